package childproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// environment returns the environment of a [Service]. It contains no possible credentials of the operator (proxies,
// cloud keys, exporter headers), and no settings that are meant for this process.
func environment(own []string) []string {
	names := []string{"GOGC", "TMPDIR", "TZ"}
	return slices.DeleteFunc(slices.Clone(own), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(names, name)
	})
}

// maxFiles limits the open file descriptors of a [Service], for example for the watches and connections of a control
// plane's nodes and clients.
const maxFiles = 65536

// Service is a process that outlives this process and logs to a file: a hosted control plane (package supervisor) or a
// load balancer (package loadbalancer).
type Service struct {
	Command []string // program and arguments
	Dir     string   // working directory
	Log     string   // path of the log
	User    int      // user that owns the log; 0: the user of this process
}

// Start starts the process in a separate session, with a reduced environment, and confined.
func (s Service) Start() (*Process, error) {
	log, err := openLogFor(s.User, s.Log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, environment(os.Environ()), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return start(cmd, func() error { return startConfined(cmd) })
}

// startConfined starts the command as a process that cannot gain privileges by executing a file, writes no
// core dump, which would contain keys, and has a limited number of file descriptors.
func startConfined(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	go func() {
		// prctl applies to the thread and is inherited by its child processes. The thread ends with this
		// goroutine, because it is never unlocked.
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			result <- fmt.Errorf("set no_new_privs: %w", err)
			return
		}
		result <- cmd.Start()
	}()
	if err := <-result; err != nil {
		return err
	}
	for limit, most := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxFiles} {
		if err := lowerLimit(cmd.Process.Pid, limit, most); err != nil {
			_ = cmd.Process.Kill() // it has done nothing yet
			_ = cmd.Wait()
			return fmt.Errorf("limit what the process may use: %w", err)
		}
	}
	return nil
}

// lowerLimit lowers a resource limit of a process. It leaves a lower limit unchanged, and ignores a process
// that has exited.
func lowerLimit(pid, resource int, most uint64) error {
	var now unix.Rlimit
	err := unix.Prlimit(pid, resource, nil, &now)
	if err == nil && now.Max <= most && now.Cur == now.Max {
		return nil
	}
	if err == nil {
		most = min(most, now.Max)
		err = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
