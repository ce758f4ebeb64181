// Package freebind listens on addresses that this machine may not have yet. [ListenFreebind] opens a port on the address of a
// network that may appear after the program starts, and may disappear and reappear while it runs, as the bridges of
// cluster networks do. [AddressHolder] names the process that uses a port.
package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ListenFreebind listens on the TCP address.
func ListenFreebind(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(network, _ string, conn syscall.RawConn) error {
		var opt error
		err := conn.Control(func(fd uintptr) {
			if network == "tcp6" {
				opt = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
				return
			}
			opt = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
		})
		return errors.Join(err, opt)
	}}
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}
