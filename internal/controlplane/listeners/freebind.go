package listeners

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Freebind listens at the TCP address, even if this host does not have it yet, such as the gateway address of a network
// that is created later. API servers for nodes and the load balancers of local clusters listen with it.
func Freebind(ctx context.Context, address string) (net.Listener, error) {
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
