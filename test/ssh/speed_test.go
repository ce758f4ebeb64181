package ssh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/slipwayhq/slipway/internal/nodeimage"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// Goals on a quiet machine with two cores that runs the hosts too. A missed goal is reported and is no error, because a busy machine
// misses it.
const (
	goalHosted  = 30 * time.Second
	goalKubeadm = 90 * time.Second
	goalUpload  = 60 * time.Second // in addition, on hosts without the bundle
	goalRelease = 20 * time.Second
	goalMemory  = 250 // MB of resident memory of the manager
)

// benchmark skips the test unless `make bench-ssh` runs it.
func benchmark(t *testing.T) {
	t.Helper()
	if os.Getenv("SLIPWAY_BENCH_SSH") == "" {
		t.Skip("make bench-ssh runs this measurement")
	}
}

// TestSpeed measures the creation and the release of clusters on five hosts, without and with the bundle on them. `make bench-ssh` runs
// it.
func TestSpeed(t *testing.T) {
	benchmark(t)
	machines := startHosts(t, "trixie", 5)
	in := startInstallation(t)
	in.add(machines)
	eventually(t, "the hosts to be available", patience, func() error { return in.available(5) })
	kubeadm := []string{"ssh-kubeadm", "--set", "virtualIP=" + virtualIP, "--control-planes", "3", "--workers", "2"}
	hosted := []string{"ssh", "--set", fmt.Sprintf(`controlPlaneEndpoint={"host": %q, "port": 6443}`, hostedEndpoint), "--workers", "3"}
	for _, m := range []struct {
		what    string
		fresh   bool
		cluster []string
		goal    time.Duration
	}{
		{"three control plane hosts and two workers, fresh hosts", true, kubeadm, goalKubeadm + goalUpload},
		{"three control plane hosts and two workers", false, kubeadm, goalKubeadm},
		{"hosted control plane and three workers, fresh hosts", true, hosted, goalHosted + goalUpload},
		{"hosted control plane and three workers", false, hosted, goalHosted},
	} {
		if m.fresh {
			removeBundles(t, machines)
		}
		in.measure(m.what, m.goal, func() {
			in.run(append([]string{"create", "cluster", "speed", "--wait-timeout", "30m", "--class"}, m.cluster...)...)
		})
		in.timeline()
		if m.cluster[0] == "ssh" && !m.fresh {
			in.measure("release of one host", goalRelease, func() {
				in.scale("speed", 2)
				eventually(t, "the host to be available", patience, func() error { return in.available(3) })
			})
		}
		in.measure("delete, until all hosts are available", 0, func() {
			in.run("delete", "cluster", "speed")
			eventually(t, "the hosts to be available", patience, func() error { return in.available(5) })
		})
	}
	t.Logf("memory of the manager: at most %d MB", in.managerMemory())
}

// measure reports the duration of a step, and a missed goal. Without a goal, 0, the duration is only reported.
func (in installation) measure(what string, goal time.Duration, step func()) {
	in.Helper()
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		in.Fatal(err)
	}
	began := time.Now()
	step()
	took := time.Since(began)
	remark := ""
	if goal > 0 {
		remark = fmt.Sprintf("; the goal is %.0f s%s", goal.Seconds(), missed(took > goal))
	}
	in.Logf("%-55s %6.1f s%s (load %s)", what, took.Seconds(), remark, strings.Fields(string(load))[0])
}

func missed(is bool) string {
	if is {
		return ": MISSED"
	}
	return ""
}

// timeline prints when the conditions of each SSHMachine became true, in seconds after its creation: where the time goes.
func (in installation) timeline() {
	in.Helper()
	for _, name := range strings.Fields(in.get("sshmachines", "{.items[*].metadata.name}")) {
		created, err := time.Parse(time.RFC3339, in.get("sshmachine/"+name, "{.metadata.creationTimestamp}"))
		if err != nil {
			in.Fatal(err)
		}
		var out strings.Builder
		for _, c := range []string{"HostClaimed", "HostPrepared", "BootstrapExecSucceeded"} {
			at, err := time.Parse(time.RFC3339, in.get("sshmachine/"+name, fmt.Sprintf("{.status.conditions[?(@.type==%q)].lastTransitionTime}", c)))
			if err == nil {
				fmt.Fprintf(&out, " %s after %.0f s", c, at.Sub(created).Seconds())
			}
		}
		in.Logf("  %s of %s:%s", name, created.Format(time.TimeOnly), out.String())
	}
}

// removeBundles deletes the bundles of hosts that nothing uses.
func removeBundles(t *testing.T, machines []host) {
	t.Helper()
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	for _, m := range machines {
		h, err := pool.Connect(t.Context(), m.target("root"))
		if err == nil {
			err = h.RemoveBundles(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// managerMemory returns the largest resident memory of the manager since its start, in MB.
func (in installation) managerMemory() int {
	in.Helper()
	p, err := procfs.NewProc(in.managerProcess())
	if err != nil {
		in.Fatal(err)
	}
	s, err := p.NewStatus()
	if err != nil {
		in.Fatal(err)
	}
	return int(s.VmHWM / 1e6)
}

// TestManyHosts measures the memory of the manager while it copies a bundle to 50 hosts at once, which are SSH servers in this process.
// `make bench-ssh` runs it.
func TestManyHosts(t *testing.T) {
	benchmark(t)
	const hosts, size = 50, 20 << 20
	program := bytes.Repeat([]byte("slipway "), size/8)
	createNetwork(t) // the hosted control plane has an address of it
	bundles := t.TempDir()
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": program, "cni/bridge": []byte("b")})
	if err := os.Symlink(b.Dir, filepath.Join(bundles, nodeimage.DefaultVersion+"-"+runtime.GOARCH)); err != nil {
		t.Fatal(err)
	}
	in := startInstallationWith(t, bundles, "  atOnce: 100\n")
	all := &crowd{size: hosts, complete: make(chan struct{})}
	for i := range hosts {
		s := sshtest.Start(t)
		simulateHost(s, i, all)
		target := s.Target()
		key := in.path(fmt.Sprintf("key-%d", i))
		if err := os.WriteFile(key, target.PrivateKey, 0o600); err != nil {
			t.Fatal(err)
		}
		in.run("hosts", "add", target.Address, "--name", fmt.Sprintf("host-%d", i), "--port", fmt.Sprint(target.Port), "--user", "root", "--key", key,
			"--host-key", target.HostKeys[0], "--no-check")
	}
	eventually(t, "the hosts to be available", patience, func() error { return in.available(hosts) })
	idle := in.managerMemory()
	in.run("create", "cluster", "many", "--class", "ssh", "--workers", fmt.Sprint(hosts), "--skip-checks", "--wait-timeout", "0",
		"--set", fmt.Sprintf(`controlPlaneEndpoint={"host": %q, "port": 6443}`, hostedEndpoint))
	eventually(t, "the hosts to be prepared", patience, func() error {
		prepared := in.get("sshmachines", `{.items[*].status.conditions[?(@.type=="HostPrepared")].status}`)
		if n := strings.Count(prepared, "True"); n != hosts {
			return fmt.Errorf("%d of %d", n, hosts)
		}
		return nil
	})
	memory := in.managerMemory()
	t.Logf("the bundle was copied to %d hosts, to %d at once: the manager used %d MB, and %d MB before; the goal is %d MB%s", hosts, all.most.Load(), memory, idle, goalMemory, missed(memory > goalMemory))
}

// crowd lets copies of a bundle begin when all hosts are ready for it, or after a minute. It counts them.
type crowd struct {
	size          int32
	complete      chan struct{}
	begun         atomic.Int32
	copying, most atomic.Int32
}

func (c *crowd) begin() {
	if c.begun.Add(1) == c.size {
		close(c.complete)
	}
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-c.complete:
	case <-timer.C:
	}
	c.most.Store(max(c.most.Load(), c.copying.Add(1)))
}

// simulateHost answers the scripts for a host that is prepared and whose bootstrap data never ends.
func simulateHost(s *sshtest.Server, i int, all *crowd) {
	id := fmt.Sprintf("%032x", i+1)
	s.Handle("facts", func(sshtest.Call) sshtest.Result {
		_, err := os.Stat(s.Path("/etc/slipway/machine.json"))
		return sshtest.Result{Output: fmt.Sprintf("NOW=%d\nOS=Debian GNU/Linux 13 (trixie)\nARCHITECTURE=%s\nHOSTNAME=host-%d\nCPUS=4\nMEMORY_KIB=8388608\n"+
			"DISK_KIB=99999999\nDISK_FREE_KIB=99999999\nCGROUP=2\nMACHINE_ID=%s\nKUBELET=false\nRECORD=%t\n", time.Now().Unix(), machineName(), i, id, err == nil)}
	})
	s.Handle("preflight", func(sshtest.Call) sshtest.Result {
		return sshtest.Result{Output: fmt.Sprintf("SYSTEMD=true\nCGROUP=2\nCONTROLLERS=cpuset cpu io memory hugetlb pids\nOVERLAY=true\nVXLAN=true\nSETTING=net.ipv4.ip_forward 1\n"+
			"SWAP=0\nDISK_FREE_KIB=99999999\nRUN_FREE_KIB=102400\nMEMORY_KIB=8388608\nCPUS=4\nNOW=%d\nARCHITECTURE=%s\nHOSTNAME=host-%d\nMACHINE_ID=%s\nCHCON=true\n",
			time.Now().Unix(), machineName(), i, id)}
	})
	s.Handle("record-create", func(c sshtest.Call) sshtest.Result {
		s.WriteFile("/etc/slipway/machine.json", string(c.Input))
		return sshtest.Result{}
	})
	s.Handle("bundle-begin", func(c sshtest.Call) sshtest.Result {
		for line := range strings.Lines(string(c.Input)) {
			f := strings.Fields(line)
			s.WriteFile("/var/lib/slipway/bundles/"+c.Parameters["DIGEST"][0]+"/"+f[3]+".part", "")
		}
		all.begin()
		return sshtest.Result{}
	})
	s.Handle("bundle-finish", func(sshtest.Call) sshtest.Result {
		all.copying.Add(-1)
		return sshtest.Result{}
	})
	s.Answer("node-prepare", "")
	s.Answer("bootstrap-start", "")
	s.Answer("bootstrap-progress", "STATE=None\n\n")
}

// machineName returns the architecture of this machine as uname prints it.
func machineName() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

var errNoManager = errors.New("no manager runs")

// managerProcess waits for the process of the manager.
func (in installation) managerProcess() (pid int) {
	in.Helper()
	eventually(in.T, "a manager", patience, func() error {
		if pid = in.currentManager(); pid == 0 {
			return errNoManager
		}
		return nil
	})
	return pid
}

// currentManager returns the process of the manager, 0 if there is none.
func (in installation) currentManager() int {
	var s struct {
		Management *struct {
			Manager struct {
				PID int `json:"pid"`
			} `json:"manager"`
		} `json:"management"`
	}
	out, err := in.try("status", "-o", "json")
	if err != nil || json.Unmarshal([]byte(out), &s) != nil || s.Management == nil {
		return 0
	}
	return s.Management.Manager.PID
}
