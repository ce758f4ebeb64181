package container

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/redact"
)

// statusFiles are the files of a bootstrap in a container, which [Engine.Progress] reads: Started exists once it has
// started, Running while it runs, Result contains its result, Log its output.
type statusFiles struct {
	Started, Running, Result, Log string
	// Pods is the directory with container logs. Empty: the kubelet's default.
	Pods string
}

// podLogs is the kubelet's default directory for container logs.
const podLogs = "/var/log/pods"

// Limits of the output shown of a failed script, of an unexpected result, and of the kubelet output that is read. A
// kubelet prints the reason for its exit in its last line, which warnings about deprecated flags can surround.
const (
	logLines, maxStatusLogBytes = 20, 4096
	// readLines is larger than logLines because lines of kubeadm's preflight checks are filtered out.
	readLines      = 60
	kubeletLines   = 8
	kubeletBytes   = 300
	maxResultBytes = 300
	// printedBytes limits each of the two printed texts: only the last 64 KiB of a command's output are retained, and
	// the output must include the word at its beginning.
	printedBytes = 24 << 10
	// serverBytes limits the log that is read of a kube-apiserver that has exited.
	serverBytes = 8 << 10
)

// logMark separates the output of the kubelet from the output of the script.
const logMark = "slipway: output of the bootstrap"

// serverMark separates the output of the kubelet from the output of the kube-apiserver.
const serverMark = "slipway: output of kube-apiserver"

// Program returns a program that prints the status of the bootstrap: one word, then the last log lines of a configured
// kubelet. After a failure, it also prints the last lines of the latest kube-apiserver containers and of the script,
// each preceded by a mark. [Engine.Progress] runs it.
func (t statusFiles) Program() string {
	return fmt.Sprintf(`kubelet() { [ ! -e /var/lib/kubelet/config.yaml ] || journalctl --quiet --no-pager --output cat --lines %[6]d _SYSTEMD_UNIT=kubelet.service 2>/dev/null | tail -c %[8]d || true; }
server() { for log in $(ls -t %[9]s/kube-system_kube-apiserver-*/kube-apiserver/*.log 2>/dev/null | head -n 2); do tail -n %[6]d "$log"; done 2>/dev/null | tail -c %[10]d || true; }
if [ -e %[1]s ]; then cat %[1]s; kubelet; echo; echo '%[11]s'; server; echo; echo '%[7]s'; tail -n %[5]d %[4]s 2>/dev/null | tail -c %[8]d || true
elif [ -e %[2]s ]; then echo running; %[12]s; kubelet
elif [ -e %[3]s ]; then echo interrupted
else echo none; fi`, t.Result, t.Running, t.Started, t.Log, readLines, kubeletLines, logMark, printedBytes,
		cmp.Or(t.Pods, podLogs), serverBytes, serverMark, statusScript())
}

// mostFailed limits the number of failed commands that are reported.
const mostFailed = 3

// statusScript returns a program that prints the stage and failed commands of a script in the format that
// [parseStatus] reads.
func statusScript() string {
	return fmt.Sprintf(`{ sed 's/^/stage /' %[1]s; head -n %[3]d %[2]s | sed 's/^/command /'; } 2>/dev/null || true`, backend.StageFile, backend.FailedFile, mostFailed)
}

// parseStatus parses the output of [statusFiles.Program]: whether the script runs or has ended, the end of its output,
// and the reason for the last exit of the kubelet and the API server.
func parseStatus(out string) (backend.Progress, error) {
	first, rest, _ := strings.Cut(out, "\n")
	word, code, _ := strings.Cut(first, " ")
	var p backend.Progress
	rest = readTraces(rest, &p)
	kubelet, log, _ := strings.Cut(rest, logMark+"\n")
	kubelet, server, _ := strings.Cut(kubelet, serverMark+"\n")
	switch word {
	case "succeeded":
		return backend.Progress{Phase: backend.Succeeded}, nil
	case "failed":
		p.Phase, p.TimedOut, p.Log, p.Kubelet, p.APIServer = backend.Failed, code == timedOut, redact.Public(lastLines(log), maxStatusLogBytes), lastError(kubelet), lastError(server)
		return p, nil
	case "running":
		return backend.Progress{Phase: backend.InProgress, WaitingFor: p.WaitingFor, Running: p.Running, Kubelet: lastError(kubelet)}, nil
	case "interrupted":
		return backend.Progress{Phase: backend.Interrupted}, nil
	case "none":
		return backend.Progress{Phase: backend.NotStarted}, nil
	}
	return backend.Progress{}, fmt.Errorf("reading the bootstrap's result: unexpected output %q", redact.Tail(first, maxResultBytes))
}

// passedCheck matches the output of a kubeadm check that passed or only warns. Failed checks begin with [ERROR.
var passedCheck = regexp.MustCompile(`^(?:\s*\[WARNING |\[preflight\] (?:Running|Reading|Use|Pulling|This might|You can|The system verification)|(?:KERNEL_VERSION|OS|CGROUPS_[A-Z]+|CONFIG_[A-Z0-9_]+): )`)

// colors matches the escape sequences around kubeadm's system verification results.
var colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// lastLines returns the last lines of a log without passed checks, which would displace the lines about the failure.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return passedCheck.MatchString(colors.ReplaceAllString(line, "")) })
	if strings.TrimSpace(strings.Join(kept, "")) == "" {
		kept = lines
	}
	return strings.Join(kept[max(0, len(kept)-logLines):], "\n")
}

// timedOut is the exit code of a script that was stopped at its timeout.
const timedOut = "124"

// trace matches a line printed by [statusScript]: the stage that a script waits for, the command that it runs, or a
// failed command with its exit code. Package cloudinit writes these lines in its scripts (render.go), so both must
// agree on sections, stages and the word end.
var trace = regexp.MustCompile(`^(?:stage (boot|containerd)|(stage step|command) (bootcmd|runcmd|users) (-|\d{1,6}) (-|[\w.+-]{1,32})(?: (\d{1,3}))?)$`)

// readTraces parses the lines of [statusScript] at the beginning of a text and returns the rest. It stops at the first
// line that does not match, because the machine can write arbitrary text.
func readTraces(text string, p *backend.Progress) string {
	for {
		line, rest, _ := strings.Cut(text, "\n")
		found := trace.FindStringSubmatch(line)
		switch {
		case found == nil:
			return text
		case found[1] != "":
			p.WaitingFor = found[1]
		default:
			c := backend.Command{Section: found[3], Index: -1, Program: strings.Trim(found[5], "-")}
			if n, err := strconv.Atoi(found[4]); err == nil {
				c.Index = n
			}
			if found[2] != "command" {
				p.WaitingFor, p.Running, p.Completed = "", &c, c.Index < 0 && c.Program == "end"
				if p.Completed {
					p.Running = nil
				}
				break
			}
			c.Code, _ = strconv.Atoi(found[6])
			if len(p.Failed) < mostFailed {
				p.Failed = append(p.Failed, c)
			}
		}
		text = rest
	}
}

// exitLine matches the last line of a kubelet, or of a kube-apiserver in its container's log, before it exits: klog's
// header, which differs each time, and the error as a Go string.
var exitLine = regexp.MustCompile(`^(?:\S+ (?:stdout|stderr) F )?E\d{4} \S+ +\d+ run\.go:\d+\] "command failed" err=("(?:[^"\\]|\\.)*")`)

// lastError returns the reason for a component's last exit, and an empty string if the log contains none.
func lastError(log string) string {
	text := ""
	for line := range strings.Lines(log) {
		found := exitLine.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		if said, err := strconv.Unquote(found[1]); err == nil {
			text = said
		}
	}
	text = strings.Join(strings.Fields(redact.Tail(strings.Join(strings.Fields(text), " "), 64<<10)), " ")
	cut := []rune(text)
	if len(cut) <= kubeletBytes {
		return text
	}
	// Drop a truncated last word: it may be a part of a secret, which the masking would not recognize.
	whole := string(cut[:kubeletBytes-1])
	return whole[:strings.LastIndexByte(whole, ' ')+1] + "…"
}
