package heap

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// When memory runs out, the kernel kills the manager first, because it is restarted and loses nothing, then hosted
// control planes and load balancers, then the management cluster. The numbers are added to oom_score_adj
// (proc_pid_oom_score_adj(5)).
const (
	OOMScoreManager      = 500
	OOMScoreControlPlane = 250
)

// RaiseOOMScore raises the oom_score_adj of a process above the score of this one. `slipway up` calls it for its
// manager.
func RaiseOOMScore(pid, more int) error {
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

// ResetOOMScore sets the score of this process, which otherwise inherits the manager's. Hosted control planes and load
// balancers call it at their start.
func ResetOOMScore(score int) error { return setScore(os.Getpid(), score) }

func setScore(pid, score int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(score)), 0)
}
