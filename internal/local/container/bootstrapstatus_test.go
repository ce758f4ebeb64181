package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

const (
	wrongFlag = `E1126 13:41:25.289658       1 run.go:72] "command failed" err="failed to parse kubelet flag: unknown flag: --bogus-flag"` + "\n"
	works     = `I1126 13:41:26.1       1 server.go:1] "Started kubelet"` + "\n"
	// wrongPlugin is the last line of a kube-apiserver.
	wrongPlugin = `E1126 13:41:25.289658       1 run.go:72] "command failed" err="enable-admission-plugins plugin \"PodSecurityPolicy\" is unknown"` + "\n"
	said        = "failed to parse kubelet flag: unknown flag: --bogus-flag"
)

// preflight is what kubeadm prints of checks that passed, or only warn.
const preflight = "[preflight] Running pre-flight checks\n\t[WARNING Swap]: swap is supported for cgroup v2 only\n" +
	"[preflight] The system verification failed. Printing the output from the verification:\n" +
	"\x1b[0;37mKERNEL_VERSION\x1b[0m: \x1b[0;32m6.18.5\x1b[0m\n\x1b[0;37mOS\x1b[0m: \x1b[0;32mLinux\x1b[0m\n\x1b[0;37mCGROUPS_CPU\x1b[0m: \x1b[0;32menabled\x1b[0m\n" +
	"\t[WARNING SystemVerification]: failed to parse kernel config\n[preflight] Reading configuration from the \"kubeadm-config\" ConfigMap in namespace \"kube-system\"...\n"

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, out string
		want        backend.Progress
		wantErr     bool
	}{
		"none":           {"not started", "none\n", backend.Progress{Phase: backend.NotStarted}, false},
		"running":        {"started", "running\n", backend.Progress{Phase: backend.InProgress}, false},
		"kubelet":        {"it ends again and again", "running\n" + works + wrongFlag, backend.Progress{Phase: backend.InProgress, Kubelet: said}, false},
		"kubelet works":  {"", "running\n" + works + works, backend.Progress{Phase: backend.InProgress}, false},
		"kubelet, twice": {"the last counts", "running\n" + strings.ReplaceAll(wrongFlag, "bogus", "other") + wrongFlag, backend.Progress{Phase: backend.InProgress, Kubelet: said}, false},
		"hostile": {"one line, no control characters, no secrets, bounded", `running` + "\n" + `E1126 13:41:25.2 1 run.go:72] "command failed" err="a\nb\x1b[31m token=abc ` + strings.Repeat("ü ", 400) + `"` + "\n",
			backend.Progress{Phase: backend.InProgress, Kubelet: "a b token=*** " + strings.Repeat("ü ", 142) + "…"}, false},
		"a long word": {"it may be a part of a secret", `running` + "\n" + `E1126 13:41:25.2 1 run.go:72] "command failed" err="a b` + strings.Repeat("c", 400) + `"` + "\n",
			backend.Progress{Phase: backend.InProgress, Kubelet: "a …"}, false},
		"succeeded":   {"the log is of no interest", "succeeded\n" + wrongFlag + "\n" + logMark + "\nline\n", backend.Progress{Phase: backend.Succeeded}, false},
		"interrupted": {"the container was restarted", "interrupted\n", backend.Progress{Phase: backend.Interrupted}, false},
		"failed": {"with the end of the log, without secrets", "failed 1\n" + wrongFlag + "\n" + logMark + "\nstart\nkubeadm join --token abcdef.0123456789abcdef\x1b\n",
			backend.Progress{Phase: backend.Failed, Log: "start\nkubeadm join --token ***", Kubelet: said}, false},
		"kube-apiserver": {"its reason is in the log of its container alone", "failed 1\n\n" + serverMark + "\n2026-11-26T13:41:25.2Z stderr F " + wrongPlugin + "\n" + logMark + "\nconnection refused\n",
			backend.Progress{Phase: backend.Failed, Log: "connection refused", APIServer: `enable-admission-plugins plugin "PodSecurityPolicy" is unknown`}, false},
		"waits": {"for containerd", "running\nstage containerd\n" + works, backend.Progress{Phase: backend.InProgress, WaitingFor: backend.StageContainerd}, false},
		"runs":  {"a command", "running\nstage step runcmd 3 kubeadm\n", backend.Progress{Phase: backend.InProgress, Running: &backend.Command{Section: "runcmd", Index: 3, Program: "kubeadm"}}, false},
		"failed command": {"named, with its code", "failed 7\nstage step runcmd 0 install-proxy\ncommand runcmd 0 install-proxy 7\n\n" + logMark + "\nx\n",
			backend.Progress{Phase: backend.Failed, Log: "x", Running: &backend.Command{Section: "runcmd", Index: 0, Program: "install-proxy"},
				Failed: []backend.Command{{Section: "runcmd", Index: 0, Program: "install-proxy", Code: 7}}}, false},
		"all ran":        {"and one is not told apart", "failed 0\nstage step runcmd - end\ncommand bootcmd - - 2\n", backend.Progress{Phase: backend.Failed, Completed: true, Failed: []backend.Command{{Section: "bootcmd", Index: -1, Code: 2}}}, false},
		"timed out":      {"while it waited", "failed 124\nstage boot\n", backend.Progress{Phase: backend.Failed, TimedOut: true, WaitingFor: backend.StageBoot}, false},
		"hostile traces": {"a node writes what it likes", "failed 1\nstage step runcmd 1 \x1b[31m\n" + strings.Repeat("command runcmd 1 a 1\n", 100), backend.Progress{Phase: backend.Failed}, false},
		"values":         {"are not shown", "failed 1\n" + logMark + "\n+ mysql -phunter db\nexport A=hunter\n", backend.Progress{Phase: backend.Failed, Log: "+ mysql …\nexport A=***"}, false},
		"preflight": {"the checks of kubeadm that passed, or only warn, hide the cause",
			"failed 1\n" + logMark + "\n+ install-proxy\nproxy is missing\n" + preflight + "error execution phase preflight: couldn't validate the identity of the API Server\n",
			backend.Progress{Phase: backend.Failed, Log: "+ install-proxy\nproxy is missing\nerror execution phase preflight: couldn't validate the identity of the API Server"}, false},
		"preflight fails": {"the checks that failed are the cause", "failed 1\n" + logMark + "\n[preflight] Running pre-flight checks\n[preflight] Some fatal errors occurred:\n\t[ERROR Port-10250]: Port 10250 is in use\n",
			backend.Progress{Phase: backend.Failed, Log: "[preflight] Some fatal errors occurred:\n\t[ERROR Port-10250]: Port 10250 is in use"}, false},
		"preflight alone": {"better than nothing", "failed 1\n" + logMark + "\n[preflight] Running pre-flight checks\n",
			backend.Progress{Phase: backend.Failed, Log: "[preflight] Running pre-flight checks"}, false},
		"many lines": {"the last of them", "failed 1\n" + logMark + "\n" + strings.Repeat("a\n", 40) + strings.Repeat("b\n", 19), backend.Progress{Phase: backend.Failed, Log: "a\n" + strings.TrimSpace(strings.Repeat("b\n", 19))}, false},
		"other":      {"a broken node", "sh: not found\n", backend.Progress{}, true},
	} {
		got, err := parseStatus(tc.out)
		if (err != nil) != tc.wantErr {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// The program prints what Parse reads, by the traces that there are.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	traces := statusFiles{Started: filepath.Join(dir, "started"), Running: filepath.Join(dir, "running"), Result: filepath.Join(dir, "result"), Log: filepath.Join(dir, "log"), Pods: dir}
	for _, step := range []struct {
		file, content string
		want          backend.Progress
	}{
		{"log", "line\n", backend.Progress{Phase: backend.NotStarted}},
		{"started", "", backend.Progress{Phase: backend.Interrupted}},
		{"running", "", backend.Progress{Phase: backend.InProgress}},
		{"result", "failed 3\n", backend.Progress{Phase: backend.Failed, Log: "line"}},
		{"kube-system_kube-apiserver-n_1/kube-apiserver/0.log", "2026-11-26T13:41:25.2Z stderr F " + wrongPlugin,
			backend.Progress{Phase: backend.Failed, Log: "line", APIServer: `enable-admission-plugins plugin "PodSecurityPolicy" is unknown`}},
		{"result", "succeeded\n", backend.Progress{Phase: backend.Succeeded}},
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, step.file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, step.file), []byte(step.content), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", traces.Program()).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseStatus(string(out))
		if diff := cmp.Diff(step.want, got); err != nil || diff != "" {
			t.Errorf("with %s: %v (-want +got):\n%s", step.file, err, diff)
		}
	}
}

// Of what a command prints only the end is kept: however much a script has printed, how it ended is there.
func TestProgramIsShort(t *testing.T) {
	dir := t.TempDir()
	traces := statusFiles{Started: filepath.Join(dir, "started"), Running: filepath.Join(dir, "running"), Result: filepath.Join(dir, "result"), Log: filepath.Join(dir, "log")}
	for file, content := range map[string]string{traces.Result: "failed 1\n", traces.Log: strings.Repeat(strings.Repeat("x", 40<<10)+"\n", 30) + "the end\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", traces.Program()).Output()
	if err != nil || len(out) > 60<<10 {
		t.Fatalf("%d bytes, %v", len(out), err)
	}
	if got, err := parseStatus(string(out)); err != nil || got.Phase != backend.Failed || !strings.HasSuffix(got.Log, "the end") {
		t.Errorf("%v, %v", got, err)
	}
}
