package bootstrapped

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/redact"
)

// Traces are the files of a bootstrap: Started and Running exist once it has started and while it runs, Result says how it ended, Log
// has its output.
type Traces struct {
	Started, Running, Result, Log string
	// Pods is the folder with the logs of containers; empty: where the kubelet keeps them.
	Pods string
}

// podLogs is where the kubelet keeps the logs of containers.
const podLogs = "/var/log/pods"

// What is shown of a failed script's output and of an answer that is none, and what is read of the kubelet's output. A kubelet says why it ends in its last line, and those of
// options that are out of use may stand around it.
const (
	logLines, logBytes = 20, 4096
	// readLines are read of it, because lines of kubeadm's preflight checks are left out.
	readLines    = 60
	kubeletLines = 8
	kubeletBytes = 300
	answerBytes  = 300
	// printedBytes bounds each of the two texts as they are printed: of what a command in a container prints only the last 64 KiB are kept,
	// and the word at its beginning is needed.
	printedBytes = 24 << 10
	// serverBytes bounds what is read of a kube-apiserver that has ended.
	serverBytes = 8 << 10
)

// logMark is the line between what the kubelet printed and the output of the script.
const logMark = "slipway: output of the bootstrap"

// serverMark is the line between what the kubelet printed and what the kube-apiserver did.
const serverMark = "slipway: output of kube-apiserver"

// Program prints how far the bootstrap is: a word, the last lines of the kubelet that has a configuration, and after a failure, each after a
// mark, the last lines of the last containers of a kube-apiserver and of the script.
func (t Traces) Program() string {
	return fmt.Sprintf(`kubelet() { [ ! -e /var/lib/kubelet/config.yaml ] || journalctl --quiet --no-pager --output cat --lines %[6]d _SYSTEMD_UNIT=kubelet.service 2>/dev/null | tail -c %[8]d || true; }
server() { for log in $(ls -t %[9]s/kube-system_kube-apiserver-*/kube-apiserver/*.log 2>/dev/null | head -n 2); do tail -n %[6]d "$log"; done 2>/dev/null | tail -c %[10]d || true; }
if [ -e %[1]s ]; then cat %[1]s; kubelet; echo; echo '%[11]s'; server; echo; echo '%[7]s'; tail -n %[5]d %[4]s 2>/dev/null | tail -c %[8]d || true
elif [ -e %[2]s ]; then echo running; %[12]s; kubelet
elif [ -e %[3]s ]; then echo interrupted
else echo none; fi`, t.Result, t.Running, t.Started, t.Log, readLines, kubeletLines, logMark, printedBytes,
		cmp.Or(t.Pods, podLogs), serverBytes, serverMark, Copy())
}

// mostFailed bounds how many commands that failed are named.
const mostFailed = 3

// Copy prints the traces of a script as Parse reads them.
func Copy() string {
	return fmt.Sprintf(`{ sed 's/^/stage /' %[1]s; head -n %[3]d %[2]s | sed 's/^/command /'; } 2>/dev/null || true`, backend.StageFile, backend.FailedFile, mostFailed)
}

// Parse reads what the program printed.
func Parse(out string) (backend.Progress, error) {
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
		p.Phase, p.TimedOut, p.Log, p.Kubelet, p.APIServer = backend.Failed, code == timedOut, redact.Public(lastLines(log), logBytes), lastError(kubelet), lastError(server)
		return p, nil
	case "running":
		return backend.Progress{Phase: backend.InProgress, Waiting: p.Waiting, Running: p.Running, Kubelet: lastError(kubelet)}, nil
	case "interrupted":
		return backend.Progress{Phase: backend.Interrupted}, nil
	case "none":
		return backend.Progress{Phase: backend.NotStarted}, nil
	}
	return backend.Progress{}, fmt.Errorf("reading the bootstrap's result: unexpected answer %q", redact.Tail(first, answerBytes))
}

// checked is a line of a check of kubeadm that passed or only warns. Checks that fail begin with [ERROR.
var checked = regexp.MustCompile(`^(?:\s*\[WARNING |\[preflight\] (?:Running|Reading|Use|Pulling|This might|You can|The system verification)|(?:KERNEL_VERSION|OS|CGROUPS_[A-Z]+|CONFIG_[A-Z0-9_]+): )`)

// colors are the escape sequences in which kubeadm prints what it found of the system.
var colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// lastLines are the last lines of a log, without those of checks, which would take the place of what failed.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return checked.MatchString(colors.ReplaceAllString(line, "")) })
	if strings.TrimSpace(strings.Join(kept, "")) == "" {
		kept = lines
	}
	return strings.Join(kept[max(0, len(kept)-logLines):], "\n")
}

// timedOut is the code of a script that was ended because its time was over.
const timedOut = "124"

// trace is a line of what [Copy] prints: what a script waits for, what it runs, or a command that failed with its code.
var trace = regexp.MustCompile(`^(?:stage (boot|containerd)|(stage step|command) (bootcmd|runcmd|users) (-|\d{1,6}) (-|[\w.+-]{1,32})(?: (\d{1,3}))?)$`)

// readTraces reads the traces at the beginning of a text, and returns what follows them. Lines that are none end it: the machine may
// write anything.
func readTraces(text string, p *backend.Progress) string {
	for {
		line, rest, _ := strings.Cut(text, "\n")
		found := trace.FindStringSubmatch(line)
		switch {
		case found == nil:
			return text
		case found[1] != "":
			p.Waiting = found[1]
		default:
			c := backend.Command{Section: found[3], Index: -1, Program: strings.Trim(found[5], "-")}
			if n, err := strconv.Atoi(found[4]); err == nil {
				c.Index = n
			}
			if found[2] != "command" {
				p.Waiting, p.Running, p.Ran = "", &c, c.Index < 0 && c.Program == "end"
				if p.Ran {
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

// ended is the line with which a kubelet, or a kube-apiserver in its container's log, ends: klog's header, which changes each time, and the
// error as a Go string.
var ended = regexp.MustCompile(`^(?:\S+ (?:stdout|stderr) F )?E\d{4} \S+ +\d+ run\.go:\d+\] "command failed" err=("(?:[^"\\]|\\.)*")`)

// lastError is why a component ended; empty: it has not, as far as its last lines say.
func lastError(log string) string {
	text := ""
	for line := range strings.Lines(log) {
		found := ended.FindStringSubmatch(line)
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
	// A word that is cut in two may be a part of a secret, which no one finds.
	whole := string(cut[:kubeletBytes-1])
	return whole[:strings.LastIndexByte(whole, ' ')+1] + "…"
}
