"""What the container sandbox needs of Docker or Podman: engines and images."""
