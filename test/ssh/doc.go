// Package ssh tests package remote and bundles on real machines without anything of Kubernetes: containers with systemd
// and sshd, built from Debian packages, on an internal Docker network. `make test-ssh` runs it, `make test` runs all but
// TestVirtualIP, and `make bench-ssh` measures. It is skipped elsewhere, because it takes minutes.
package ssh
