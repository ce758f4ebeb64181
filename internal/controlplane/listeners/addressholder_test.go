package listeners_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/controlplane/listeners"
)

// The process that has a port is named, also where it listens at all addresses.
func TestHolder(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Logf("%s: %v", at, err) // a host without IPv6
			continue
		}
		address := l.Addr().String()
		if at == ":0" {
			address = fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)
		}
		if got, want := listeners.AddressHolder(address), fmt.Sprintf("process %d (", os.Getpid()); !strings.HasPrefix(got, want) {
			t.Errorf("%s is taken by %q, want %q", address, got, want)
		}
		_ = l.Close()
		if got := listeners.AddressHolder(address); got != "another process" {
			t.Errorf("%s, which is free, is taken by %q", address, got)
		}
	}
}
