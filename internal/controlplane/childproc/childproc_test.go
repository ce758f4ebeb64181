package childproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asChild makes this test program the child, or a parent with a child, of a test.
const asChild = "HANDOVER_TEST_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(asChild) {
	case "":
		os.Exit(m.Run())
	case "parent":
		os.Exit(parent())
	default:
		os.Exit(child(os.Getenv(asChild)))
	}
}

type config struct{ Answer string }

// child serves its answer over HTTP.
func child(how string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var cfg config
	p, l, err := Receive(os.Stdin, &cfg)
	if err != nil || how == "refuse" {
		fmt.Fprintln(os.Stderr, "refused:", err)
		return 3
	}
	if err := p.AwaitRun(); err != nil {
		return 4
	}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, cfg.Answer) }))
	}()
	p.Ready()
	if how == "die" {
		return 5
	}
	if how == "deaf" {
		select {}
	}
	<-ctx.Done()
	return 0
}

// parent starts a child that is deaf, writes its process ID and waits to be killed.
func parent() int {
	_ = os.Setenv(asChild, "deaf")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	c, err := Launch(context.Background(), os.Args[0], config{}, []*net.TCPListener{l.(*net.TCPListener)})
	if err != nil {
		return 2
	}
	fmt.Println(c.PID())
	_ = c.Run(context.Background(), func() {})
	return 3
}

func openListeners(t *testing.T, n int) []*net.TCPListener {
	t.Helper()
	var out []*net.TCPListener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, l.(*net.TCPListener))
	}
	return out
}

// A child serves on all listeners of its parent, and stops when it is told to.
func TestHandover(t *testing.T) {
	t.Setenv(asChild, "serve")
	l := openListeners(t, 2)
	c, err := Launch(t.Context(), os.Args[0], config{Answer: "yes"}, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	isReady, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.Run(ctx, func() { close(isReady) }) }()
	select {
	case <-isReady:
	case err := <-ended:
		t.Fatalf("ended before it was ready: %v", err)
	}
	for _, at := range l {
		answer, err := http.Get("http://" + at.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if string(text) != "yes" {
			t.Errorf("%s answers %q", at.Addr(), text)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a requested end: %v", err)
	}
	if syscall.Kill(c.PID(), 0) == nil {
		t.Error("the child is still there")
	}
}

// What goes wrong with a child is said.
func TestChildrenThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		reason, program, how string
		listeners            int
		launch, run          string
	}{
		"no program":   {"the version was removed", filepath.Join(t.TempDir(), "none"), "serve", 1, "no such file", ""},
		"refuses":      {"a flag that the version does not know", os.Args[0], "refuse", 1, "does not accept its configuration: it exited with exit status 3", ""},
		"no listeners": {"", os.Args[0], "serve", 0, "does not accept", ""},
		"dies":         {"the supervisor starts the whole again", os.Args[0], "die", 1, "", "exit status 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(asChild, test.how)
			c, err := Launch(t.Context(), test.program, config{}, openListeners(t, test.listeners))
			if err == nil && test.launch == "" {
				err = c.Run(t.Context(), func() {})
			}
			if want := test.launch + test.run; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q: %s", err, want, test.reason)
			}
		})
	}
}

// A child that is not run is ended.
func TestClose(t *testing.T) {
	t.Setenv(asChild, "serve")
	c, err := Launch(t.Context(), os.Args[0], config{}, openListeners(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if syscall.Kill(c.PID(), 0) == nil {
		t.Error("the child is still there")
	}
}

// Another revision is refused on the first line.
func TestReceiveRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"nothing": "", "no JSON": "x\n", "another revision": `{"protocol":99,"listeners":1,"config":{}}` + "\n", "no listener": `{"protocol":1,"config":{}}` + "\n",
	} {
		if _, _, err := Receive(strings.NewReader(in), &config{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// However a parent ends, its child does, too.
func TestNoChildOutlivesItsParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=parent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var line string
	if _, err := fmt.Fscanln(out, &line); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(line)
	if err != nil || syscall.Kill(pid, 0) != nil {
		t.Fatalf("child %q: %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.Now().Add(30 * time.Second)
	for !gone(pid) {
		if time.Now().After(deadline) {
			t.Fatalf("child %d outlived its parent", pid)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// gone reports whether a process has ended; one that no parent has waited for yet has.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// A program that is named by an open file is executed as that file, and has the name of the file.
func TestLaunchOfAnOpenFile(t *testing.T) {
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	open, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(open) }()
	t.Setenv(asChild, "refuse")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = Launch(t.Context(), fmt.Sprint("/proc/self/fd/", open), config{}, []*net.TCPListener{l.(*net.TCPListener)})
	if err == nil || !strings.Contains(err.Error(), os.Args[0]+" does not accept its configuration: it exited with exit status 3") {
		t.Errorf("a program that refuses: %v", err)
	}
	if got := pathOf(os.Args[0]); got != os.Args[0] {
		t.Errorf("%s is called %s", os.Args[0], got)
	}
}
