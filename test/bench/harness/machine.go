package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Machine describes where a benchmark ran, without names of hosts, paths or addresses.
type Machine struct {
	Date       string `json:"date"` // UTC
	Cores      int    `json:"cores"`
	Memory     int64  `json:"memory"` // bytes
	System     string `json:"system"`
	Kernel     string `json:"kernel"`
	Docker     string `json:"docker,omitempty"`
	Go         string `json:"go"`
	Slipway    string `json:"slipway,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// The load average of one minute. If it is close to the number of cores before the run, times are not reliable.
	LoadBefore float64 `json:"loadBefore"`
	LoadAfter  float64 `json:"loadAfter"`
	// The pace of the machine (see Pace), in nanoseconds.
	PaceBefore time.Duration `json:"paceBefore"`
	PaceAfter  time.Duration `json:"paceAfter"`
}

// DescribeMachine describes this machine and the binary before a benchmark.
func DescribeMachine(ctx context.Context, binary string) Machine {
	m := Machine{Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU(), Go: runtime.Version()}
	m.setVersions(Must(exec.CommandContext(ctx, binary, "version", "-o", "json").Output()))
	if out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Output(); err == nil { // optional
		m.Docker = strings.TrimSpace(string(out))
	}
	m.Kernel = strings.TrimSpace(string(Must(os.ReadFile("/proc/sys/kernel/osrelease"))))
	m.System = systemName(string(Must(os.ReadFile("/etc/os-release"))))
	m.Memory = int64(*Must(Must(procfs.NewDefaultFS()).Meminfo()).MemTotalBytes)
	m.LoadBefore, m.PaceBefore = loadAverage(), Pace()
	return m
}

// Finish adds the load and the pace after the benchmark.
func (m *Machine) Finish() { m.LoadAfter, m.PaceAfter = loadAverage(), Pace() }

func loadAverage() float64 { return Must(Must(procfs.NewDefaultFS()).LoadAvg()).Load1 }

// setVersions reads the output of `slipway version -o json`.
func (m *Machine) setVersions(data []byte) {
	var v struct{ Version, KubernetesVersion string }
	Checkf(json.Unmarshal(data, &v), "read the version of slipway")
	m.Slipway, m.Kubernetes = v.Version, v.KubernetesVersion
}

// systemName is PRETTY_NAME of an os-release file (os-release(5)).
func systemName(release string) string {
	if name := regexp.MustCompile(`(?m)^PRETTY_NAME=["']?(.*?)["']?$`).FindStringSubmatch(release); name != nil {
		return name[1]
	}
	return "Linux"
}

// Pace is the time of a fixed unit of work on all cores at once. On cores that are shared with other virtual machines it can
// double within an hour, and processor times with it.
func Pace() time.Duration {
	const units, batches = 100, 7
	var times []time.Duration
	for range batches {
		start := time.Now()
		InParallel(context.Background(), runtime.NumCPU(), -1, func(context.Context, int) { encodeAndDecode(units) })
		times = append(times, time.Since(start)/units)
	}
	slices.Sort(times)
	return times[batches/2]
}

// encodeAndDecode processes 7 kB of JSON, which resembles the main work of API servers and controllers.
func encodeAndDecode(times int) {
	type entry struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
		Count  int               `json:"count"`
	}
	document := make([]entry, 64)
	for i := range document {
		document[i] = entry{fmt.Sprintf("entry-%02d", i), map[string]string{"app": "slipway", "tier": "bench", "zone": "here", "of": "a-document"}, i}
	}
	for range times {
		var decoded any
		Check(json.Unmarshal(Must(json.Marshal(document)), &decoded))
	}
}

// Load is the resource use of one or more processes.
type Load struct {
	Memory int64         // resident, bytes
	CPU    time.Duration // since the start
	Files  int           // open file descriptors; only from ReadLoad
}

// ReadLoad returns the resource use of a process.
func ReadLoad(pid int) Load {
	p := Must(procfs.NewProc(pid))
	l := LoadOf(Must(p.Stat()))
	l.Files = Must(p.FileDescriptorsLen())
	return l
}

// LoadOf is the memory and processor time of a process.
func LoadOf(s procfs.ProcStat) Load {
	return Load{Memory: int64(s.ResidentMemory()), CPU: seconds(s.CPUTime())}
}

func (l Load) Add(o Load) Load {
	return Load{Memory: l.Memory + o.Memory, CPU: l.CPU + o.CPU, Files: l.Files + o.Files}
}

// Megabytes is the resident memory in millions of bytes.
func (l Load) Megabytes() float64 { return float64(l.Memory) / 1e6 }

// ProcessTree returns a process and its descendants, parents first. A process that exits meanwhile is left out.
func ProcessTree(proc procfs.FS, root int) []procfs.ProcStat {
	children := map[int][]procfs.ProcStat{}
	var tree []procfs.ProcStat
	for _, p := range Must(proc.AllProcs()) {
		stat, err := p.Stat()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		Checkf(err, "read process %d", p.PID)
		if stat.PID == root {
			tree = append(tree, stat)
		} else {
			children[stat.PPID] = append(children[stat.PPID], stat)
		}
	}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i].PID]...)
	}
	return tree
}

// CPUTime is the time of all processors since the machine started.
type CPUTime struct {
	All    time.Duration
	Stolen time.Duration // given to other virtual machines by the host
}

// ReadCPUTime reads the time of all processors.
func ReadCPUTime(proc procfs.FS) CPUTime {
	c := Must(proc.Stat()).CPUTotal // the time of guests is part of User and Nice
	all := c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
	return CPUTime{All: seconds(all), Stolen: seconds(c.Steal)}
}

// StolenSince is the stolen part of the processor time since an earlier reading, from 0 to 1.
func (c CPUTime) StolenSince(before CPUTime) float64 {
	if c.All <= before.All {
		return 0
	}
	return float64(c.Stolen-before.Stolen) / float64(c.All-before.All)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s*1000)) * time.Millisecond }

// MaxStolen is the part of the processor time that the host may take from this virtual machine during a measurement. It is
// 75 ms of each processor in 15 s.
const MaxStolen = 0.005

// Host delays measurements while the host of this virtual machine takes processor time, up to a total patience.
type Host struct {
	Waited  time.Duration // including repeated measurements
	Repeats int

	patience time.Duration
	logged   time.Duration // Waited at the last log line

	cpu   func() CPUTime
	sleep func(context.Context, time.Duration)
	logf  func(format string, args ...any)
}

func NewHost(patience time.Duration, logf func(string, ...any)) *Host {
	return &Host{patience: patience, logged: -time.Minute, sleep: Sleep, logf: logf, cpu: ReadHostTime}
}

// ReadHostTime reads the time of all processors of this machine.
func ReadHostTime() CPUTime { return ReadCPUTime(Must(procfs.NewDefaultFS())) }

// StolenDuring returns the part of the processor time that the host took while do ran.
func (h *Host) StolenDuring(do func()) float64 {
	before := h.cpu()
	do()
	return h.cpu().StolenSince(before)
}

// WaitQuiet waits for a period in which the host takes at most MaxStolen. Without patience it waits for one period.
func (h *Host) WaitQuiet(ctx context.Context, period time.Duration) {
	for {
		stolen := h.StolenDuring(func() { h.sleep(ctx, period) })
		if stolen <= MaxStolen || h.Waited >= h.patience {
			return
		}
		h.Waited += period
		if h.Waited >= h.logged+time.Minute {
			h.logged = h.Waited
			h.logf("the host takes %.1f %% of the processor time: waiting for at most %v more", 100*stolen, max(0, h.patience-h.Waited))
		}
	}
}

// MustRepeat reports whether a measurement is invalid because of the time that the host took. Without patience all are valid.
func (h *Host) MustRepeat(stolen float64, took time.Duration) bool {
	if stolen <= MaxStolen || h.Waited >= h.patience {
		return false
	}
	h.Waited += took
	h.Repeats++
	h.logf("the host took %.2f %% of the processor time: measuring again", 100*stolen)
	return true
}
