id -u
