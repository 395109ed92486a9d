"""What the gate looks for: names, modules and strings by which code learns or changes how it is being tested."""

from __future__ import annotations

import re

__all__ = ["BUILTINS", "CALLED", "MODULES", "NAMES", "NATIVE", "SENSITIVE", "STORED", "TEST_MODULE", "TEXTS", "WORDS"]


def _by_name(**kinds: str) -> dict[str, str]:
    return {name: kind.replace("_", " ") for kind, names in kinds.items() for name in names.split()}


WORDS = _by_name(
    frames="_getframe _getframemodulename _current_frames _current_exceptions currentframe f_back f_builtins f_code "
    "f_globals f_lasti f_locals f_trace tb_frame gi_frame cr_frame ag_frame getouterframes getinnerframes "
    "getargvalues extract_stack format_stack print_stack walk_stack walk_tb findCaller stack_info",
    tracing="settrace setprofile settrace_all_threads setprofile_all_threads _settraceallthreads "
    "_setprofileallthreads addaudithook call_tracing",
    memory="get_objects get_referrers get_referents pythonapi py_object __array_interface__ ctypeslib",
    code_objects="__code__ func_code __closure__ func_closure cell_contents __globals__ func_globals co_code co_consts "
    "co_names co_varnames co_filename co_firstlineno co_lnotab co_lines co_positions",
    import_hooks="meta_path path_hooks path_importer_cache spec_from_file_location spec_from_loader module_from_spec "
    "exec_module find_spec SourceFileLoader SourcelessFileLoader ExtensionFileLoader __loader__",
    text_run_as_code="__import__ __builtins__ __subclasses__ execfile unsafe_load UnsafeLoader resolve_name",
    source_of_callers="getsource getsourcelines findsource getframeinfo linecache",
    test_runner="PYTEST_CURRENT_TEST _pytest pytest11",
    process_exit="_run_exitfuncs _register_atexit raise_signal pthread_kill",
)
"""Identifiers that mean one thing wherever they stand: attributes, names, imports, and words in strings."""
MODULES = _by_name(
    frames="tracemalloc faulthandler",
    tracing="bdb pdb trace cProfile profile sys.monitoring",
    memory="ctypes _ctypes cffi gc mmap _testcapi _testinternalcapi",
    code_objects="marshal dis opcode bytecode",
    import_hooks="imp _imp zipimport runpy site importlib.machinery importlib.abc importlib._bootstrap "
    "importlib._bootstrap_external _frozen_importlib _frozen_importlib_external",
    text_run_as_code="code codeop timeit dill cloudpickle",
    test_runner="pytest _pytest pluggy unittest doctest nose hypothesis xdist",
    process_exit="atexit",
)
NAMES = _by_name(
    frames="inspect.stack inspect.trace",
    code_objects="types.CodeType",
    import_hooks="sys.modules sys.path importlib.reload codecs.register",
    text_run_as_code="builtins.exec builtins.eval builtins.compile pickle.loads pickle.load pickle.Unpickler "
    "pydoc.locate",
    test_runner="sys.orig_argv",
    process_exit="os._exit posix._exit os.abort os.kill os.killpg os.fork os.forkpty os.execl os.execle os.execlp "
    "os.execlpe os.execv os.execve os.execvp os.execvpe sys.excepthook sys.unraisablehook sys.breakpointhook "
    "sys.displayhook threading.excepthook weakref.finalize",
    names_on_modules="builtins.globals",
)
"""Dotted names, as imports and assignments resolve them."""
CALLED = _by_name(code_objects="types.FunctionType types.LambdaType types.CellType")
"""Dotted names that count when they are called: `isinstance(f, types.FunctionType)` is ordinary code."""
STORED = _by_name(
    objects_in_disguise="__class__ __bases__ __eq__ __ne__ __instancecheck__",
    code_objects="__defaults__ __kwdefaults__",
    import_hooks="__path__ __spec__",
)
"""Attributes that count when they are assigned."""
BUILTINS = {"__import__", "compile", "delattr", "eval", "exec", "getattr", "globals", "hasattr", "setattr", "vars"}
SENSITIVE = {"builtins", "gc", "importlib", "inspect", "sys", "threading"}
"""Modules that count when they are passed on as a value, since what becomes of them is not followed."""
TEST_MODULE = re.compile(r"(?:^|\.)(?:tests|conftest|test_\w+|\w+_tests?)(?:\.|$)|^test(?:\.|$)")
TEXTS = {
    "memory": re.compile(r"/proc/|^/?proc$|/dev/mem\b"),
    "test files": re.compile(
        r"(?:^|/)tests/|^tests$|\btest_\w*(?:\.py\b|\*)|\w_test\.py\b|\bconftest\b|\bPYTEST_[A-Z]+|\*\.py$"
    ),
}
"""Strings that count wherever they stand, except in docstrings."""
NATIVE = re.compile(
    r"\b(?:PyFrame_\w+|PyEval_(?:Set|Get|Eval)\w+|PyThreadState_\w*Frame\w*|PyCode_\w+|PyUnstable_\w+|PyGC_\w+|"
    r"PyRun_\w+|Py_CompileString\w*|ptrace|dlopen|dlsym|_exit|mprotect|process_vm_\w+)\b|/proc/"
)
