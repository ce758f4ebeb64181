package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// slow is how long one step may take on a host whose processors are shared with four times as many busy loops.
	slow = 45 * time.Minute
	// fleet is how many simulated clusters are applied at once.
	fleet = 20
)

// claims are what a user must not read of something that is merely slow: that it is absent, dead or has failed.
var claims = []string{
	"No manager responds for this management cluster",
	"does not serve all of Cluster API", "is not a management cluster", "if it is not running", "exited before it was ready",
	"The control plane exited", "it was stopped, because", "the manager exited", "The manager crashed repeatedly", "ManagerCrashed", "was removed from the host", ") and is being restarted", "the manager is not running",
	"failed calling webhook", "BootstrapFailed", "Remediat", "is stopped by a signal", "has lost its quorum", "ControlPlaneDied",
}

// TestSlow runs the quickstart, a rollout and a fleet beside busy loops at four times the processors. Everything ends well, nothing is replaced
// or restarted but by the rollout, and nothing that is printed or recorded says that something is absent, dead or failed.
func TestSlow(t *testing.T) {
	if os.Getenv("SLIPWAY_E2E_SLOW") == "" {
		t.Skip("make test-slow runs it: it takes an hour")
	}
	s := &slowRun{installation: newInstallation(t)}
	s.load(4 * runtime.NumCPU())

	s.step("up", "--detach", "--listen", s.listen)
	s.step("create", "cluster", "slow", "--workers", "2", "--wait-timeout", slow.String())
	before := s.machines()
	s.step("describe", "cluster", "slow")
	s.step("alpha", "rollout", "restart", "machinedeployment/slow-workers")
	s.reach("the rollout", func() error {
		now := s.machines()
		if len(now) != 2 || slices.ContainsFunc(now, func(name string) bool { return slices.Contains(before, name) }) {
			return fmt.Errorf("before the rollout there were Machines %v, now there are %v", before, now)
		}
		return nil
	})
	s.step("wait", "cluster", "slow", "--wait-timeout", slow.String())
	after := s.machines()

	one, err := os.ReadFile("../../examples/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for n := range fleet {
		fmt.Fprintf(&all, "%s\n---\n", strings.ReplaceAll(string(one), "fleet", fmt.Sprintf("fleet-%02d", n)))
	}
	s.command(all.String(), "kubectl", "--data-dir", s.dataDir, "apply", "-f", "-")
	s.reach("the fleet", func() error {
		if n := strings.Count(s.kubectl("get", "clusters", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Available")].status}{"\n"}{end}`), "True"); n != fleet+1 {
			return fmt.Errorf("%d of %d Clusters are available", n, fleet+1)
		}
		if n := len(s.machines()); n != fleet+2 {
			return fmt.Errorf("there are %d Machines, want %d", n, fleet+2)
		}
		return nil
	})
	s.step("status")
	s.step("get", "clusters")

	if left := s.machines(); len(left) != fleet+2 || !slices.Equal(intersect(left, after), after) {
		t.Errorf("Machines were replaced: %v after the rollout, %v now", after, left)
	}
	s.nothingRestarted()
	s.noClaims()
}

// slowRun is an installation on a busy host, with all that was printed.
type slowRun struct {
	*installation
	printed bytes.Buffer
}

// load starts busy loops that end with the test.
func (s *slowRun) load(n int) {
	for range n {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		loop.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		started := make(chan error)
		go func() {
			runtime.LockOSThread() // the loop ends with the thread that started it
			err := loop.Start()
			started <- err
			if err == nil {
				_ = loop.Wait()
			}
		}()
		if err := <-started; err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = loop.Process.Kill() })
	}
}

// step runs a verb that has to succeed.
func (s *slowRun) step(args ...string) {
	s.t.Helper()
	s.command("", append(args, "--data-dir", s.dataDir)...)
}

// command runs the program with an input, and keeps all that it prints.
func (s *slowRun) command(input string, args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), slow)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Stdin = strings.NewReader(input)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	s.t.Logf("%s: %s", strings.Join(args, " "), time.Since(began).Round(time.Second))
	s.printed.Write(out)
	if err != nil {
		s.t.Fatalf("slipway %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (s *slowRun) reach(what string, check func() error) {
	s.t.Helper()
	began := time.Now()
	eventually(s.t, slow, what, func() error {
		err := check()
		if err != nil {
			<-time.After(5 * time.Second) // the host has enough to do
		}
		return err
	})
	s.t.Logf("%s: %s", what, time.Since(began).Round(time.Second))
}

// machines are the names of all Machines, in order.
func (s *slowRun) machines() []string {
	names := strings.Fields(s.kubectl("get", "machines", "-A", "-o", "jsonpath={.items[*].metadata.name}"))
	slices.Sort(names)
	return names
}

func (s *slowRun) nothingRestarted() {
	s.t.Helper()
	var status struct {
		State       string `json:"state"`
		Supervision struct {
			Restarts int `json:"restarts"`
		} `json:"supervision"`
		Management struct {
			Manager struct {
				PID      int    `json:"pid"`
				Restarts int    `json:"restarts"`
				LastExit string `json:"lastExit"`
			} `json:"manager"`
		} `json:"management"`
		Planes []struct {
			Name     string `json:"name"`
			Running  bool   `json:"running"`
			Restarts int    `json:"restarts"`
			LastExit string `json:"lastExit"`
		} `json:"hostedControlPlanes"`
	}
	if err := json.Unmarshal([]byte(s.run("status", "-o", "json")), &status); err != nil {
		s.t.Fatal(err)
	}
	if status.State != "Running" || status.Supervision.Restarts+status.Management.Manager.Restarts > 0 || status.Management.Manager.PID == 0 {
		s.t.Errorf("the management cluster or its manager was restarted: %+v", status)
	}
	for _, p := range status.Planes {
		if !p.Running || p.Restarts > 0 {
			s.t.Errorf("control plane %s was restarted: %+v", p.Name, p)
		}
	}
}

// noClaims checks what was printed, all events, and all conditions that are there.
func (s *slowRun) noClaims() {
	s.t.Helper()
	for what, text := range map[string]string{
		"output": s.printed.String(),
		"events": s.kubectl("get", "events", "-A", "-o", `jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}`),
		"conditions": s.kubectl("get", "clusters,machines,machinedeployments,localmachines,localclusters,hostedcontrolplanes", "-A",
			"-o", `jsonpath={range .items[*]}{.kind} {.metadata.name}: {.status.conditions[*].message}{"\n"}{end}`),
	} {
		for line := range strings.Lines(text) {
			if slices.ContainsFunc(claims, func(claim string) bool { return strings.Contains(line, claim) }) {
				s.t.Errorf("%s of something that was slow: %s", what, strings.TrimSpace(line))
			}
		}
	}
}

func intersect(a, b []string) (both []string) {
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}
