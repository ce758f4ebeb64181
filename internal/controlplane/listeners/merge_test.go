package listeners

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestJoinAcceptsFromBoth(t *testing.T) {
	first, second := listen(t), listen(t)
	both := Merge(first, second)
	if both.Addr() != first.Addr() {
		t.Errorf("address %s, want that of the first", both.Addr())
	}
	for _, l := range []net.Listener{first, second, first} {
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		in, err := both.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if in.RemoteAddr().String() != out.LocalAddr().String() {
			t.Errorf("accepted %s, dialed from %s", in.RemoteAddr(), out.LocalAddr())
		}
		_, _ = out.Close(), in.Close()
	}
	if err := both.Close(); err != nil {
		t.Error(err)
	}
	if _, err := both.Accept(); err == nil {
		t.Error("accepts after Close")
	}
	if _, err := net.Dial("tcp", second.Addr().String()); err == nil {
		t.Error("the second listener is still open")
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// failing is a listener whose first connections cannot be accepted, as when there are too many open files.
type failing struct {
	net.Listener
	left int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left--; f.left >= 0 {
		return nil, syscall.EMFILE
	}
	return f.Listener.Accept()
}

func TestMergeAcceptsAfterAnError(t *testing.T) {
	first, second := &failing{listen(t), 2}, listen(t)
	both := Merge(first, second)
	defer func() { _ = both.Close() }()
	for range 2 {
		if _, err := both.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatalf("got %v", err)
		}
	}
	out, err := net.Dial("tcp", first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	in, err := both.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
}
