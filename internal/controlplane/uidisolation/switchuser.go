package uidisolation

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxProcesses limits the processes and threads of one user, including those that a compromised control plane
// could start.
const maxProcesses = 4096

// SwitchUser permanently changes this process, the process of a hosted control plane before its components start, with
// all threads, to the user. The process has no supplementary groups and no capabilities, and cannot change its user
// again. The hidden command `slipway control-plane run` calls it.
func SwitchUser(user int) error {
	if !IsControlPlaneUser(user) {
		return fmt.Errorf("%d is not a user of a control plane", user)
	}
	if err := lowerProcesses(); err != nil {
		return fmt.Errorf("bound the number of processes: %w", err)
	}
	// Functions of package syscall apply to all threads.
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("leave the groups of root: %w", err)
	}
	if err := syscall.Setresgid(user, user, user); err != nil {
		return fmt.Errorf("become group %d: %w", user, err)
	}
	if err := syscall.Setresuid(user, user, user); err != nil {
		return fmt.Errorf("become user %d: %w", user, err)
	}
	return check()
}

// check returns an error if the process still has privileges of root.
func check() error {
	if err := syscall.Setresuid(-1, 0, -1); err == nil {
		return errors.New("this process could become root again")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if capabilities(status, "CapEff")|capabilities(status, "CapPrm")|capabilities(status, "CapAmb") != 0 {
		return errors.New("this process kept capabilities of root")
	}
	if field(status, "NoNewPrivs") != "1" {
		return errors.New("this process could get other rights by executing a file: its supervisor starts it without no_new_privs")
	}
	return nil
}

func lowerProcesses() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return err
	}
	most := min(limit.Max, maxProcesses)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most})
}
