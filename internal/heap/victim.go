package heap

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The processes that the kernel kills first when memory runs out: the manager, which is restarted and loses nothing, then
// hosted control planes, then the management cluster. The numbers are added to oom_score_adj (proc_pid_oom_score_adj(5)).
const (
	VictimManager      = 500
	VictimControlPlane = 250
)

// SetVictim makes the kernel choose the process before this one when memory runs out.
func SetVictim(pid, more int) error {
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(own)))
	if err != nil {
		return fmt.Errorf("read oom_score_adj: %w", err)
	}
	return setScore(pid, min(n+more, 1000))
}

// ResetVictim sets what a process that the manager started has from it.
func ResetVictim(score int) error { return setScore(os.Getpid(), score) }

func setScore(pid, score int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(score)), 0)
}
