"""Where work lands: the forge's port, GitHub behind it, and the git repositories of our own in between."""
