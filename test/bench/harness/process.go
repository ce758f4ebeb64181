package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Load is the resource use of one or more processes.
type Load struct {
	Memory int64         // resident, bytes
	CPU    time.Duration // since the start
	Files  int           // open file descriptors; only from ReadLoad
}

// ReadLoad returns the resource use of a process.
func ReadLoad(pid int) (Load, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Load{}, fmt.Errorf("find process %d: %w", pid, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return Load{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	l := LoadOf(stat)
	if l.Files, err = p.FileDescriptorsLen(); err != nil {
		return l, fmt.Errorf("count the files of process %d: %w", pid, err)
	}
	return l, nil
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
func ProcessTree(proc procfs.FS, root int) ([]procfs.ProcStat, error) {
	all, err := proc.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	children := map[int][]procfs.ProcStat{}
	var tree []procfs.ProcStat
	for _, p := range all {
		stat, err := p.Stat()
		if hasExited(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read process %d: %w", p.PID, err)
		}
		if stat.PID == root {
			tree = append(tree, stat)
		} else {
			children[stat.PPID] = append(children[stat.PPID], stat)
		}
	}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i].PID]...)
	}
	return tree, nil
}

func hasExited(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// CPUTime is the time of all processors since the machine started.
type CPUTime struct {
	All    time.Duration
	Stolen time.Duration // given to other virtual machines by the host
}

// ReadCPUTime reads the time of all processors.
func ReadCPUTime(proc procfs.FS) (CPUTime, error) {
	stat, err := proc.Stat()
	if err != nil {
		return CPUTime{}, fmt.Errorf("read the processor time: %w", err)
	}
	c := stat.CPUTotal // the time of guests is part of User and Nice
	all := c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
	return CPUTime{All: seconds(all), Stolen: seconds(c.Steal)}, nil
}

// StolenSince is the stolen part of the processor time since an earlier reading, from 0 to 1.
func (c CPUTime) StolenSince(before CPUTime) float64 {
	if c.All <= before.All {
		return 0
	}
	return float64(c.Stolen-before.Stolen) / float64(c.All-before.All)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s*1000)) * time.Millisecond }

// Sample calls read at an interval until an error or until stop, which returns the error.
func Sample(ctx context.Context, interval time.Duration, read func() error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		err := read()
		for err == nil && Sleep(ctx, interval) == nil {
			err = read()
		}
		result <- err
	}()
	return func() error {
		cancel()
		return <-result
	}
}

// Sleep waits and returns an error if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// MaxStolen is the part of the processor time that the host may take from this virtual machine during a measurement. It is
// 75 ms of each processor in 15 s.
const MaxStolen = 0.005

// Host delays measurements while the host of this virtual machine takes processor time, up to a total patience.
type Host struct {
	Waited  time.Duration // including repeated measurements
	Repeats int

	patience time.Duration
	logged   time.Duration // Waited at the last log line

	cpu   func() (CPUTime, error)
	sleep func(context.Context, time.Duration) error
	logf  func(format string, args ...any)
}

func NewHost(patience time.Duration, logf func(string, ...any)) *Host {
	return &Host{patience: patience, logged: -time.Minute, sleep: Sleep, logf: logf, cpu: func() (CPUTime, error) {
		proc, err := procfs.NewDefaultFS()
		if err != nil {
			return CPUTime{}, err
		}
		return ReadCPUTime(proc)
	}}
}

// StolenDuring returns the part of the processor time that the host took while do ran.
func (h *Host) StolenDuring(do func() error) (float64, error) {
	before, err := h.cpu()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := h.cpu()
	return after.StolenSince(before), err
}

// WaitQuiet waits for a period in which the host takes at most MaxStolen. Without patience it waits for one period.
func (h *Host) WaitQuiet(ctx context.Context, period time.Duration) error {
	for {
		stolen, err := h.StolenDuring(func() error { return h.sleep(ctx, period) })
		if err != nil || stolen <= MaxStolen || h.Waited >= h.patience {
			return err
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
