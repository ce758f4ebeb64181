package launch

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

// sampleInterval is the time between two samples. Processor use is averaged over smoothing samples, because the kernel
// counts in steps of 10 ms.
const (
	sampleInterval = 200 * time.Millisecond
	smoothing      = 5
)

// usage is the resource use of an installation at one time: of the hosted control planes, and of all other processes.
type usage struct {
	At                 time.Time
	Management, Hosted harness.Load
}

// probe reads the processes of a management cluster.
type probe struct {
	proc procfs.FS
	pid  int
}

func newProbe(proc string, pid int) probe { return probe{harness.Must(procfs.NewFS(proc)), pid} }

// visit calls do with each process and whether it belongs to a hosted control plane.
func (p probe) visit(do func(stat procfs.ProcStat, hosted bool)) {
	tree := harness.ProcessTree(p.proc, p.pid)
	if len(tree) == 0 {
		harness.Failf("the process of the management cluster has exited")
	}
	hosted := map[int]bool{}
	for _, stat := range tree {
		hosted[stat.PID] = hosted[stat.PPID] || p.isHosted(stat.PID)
		do(stat, hosted[stat.PID])
	}
}

// isHosted reports whether a process was started as a hosted control plane.
func (p probe) isHosted(pid int) bool {
	process, err := p.proc.Proc(pid)
	if err != nil {
		return false
	}
	arguments, err := process.CmdLine()
	return err == nil && len(arguments) > 1 && slices.Contains(arguments[1:], "control-plane")
}

func (p probe) usage() usage {
	u := usage{At: time.Now()}
	p.visit(func(stat procfs.ProcStat, hosted bool) {
		part := &u.Management
		if hosted {
			part = &u.Hosted
		}
		*part = part.Add(harness.LoadOf(stat))
	})
	return u
}

// memory is resident memory in bytes.
type memory struct {
	heap, file uint64 // anonymous memory; pages of files, such as the binary
	share      uint64 // a page of several processes counts in part (PSS)
}

func (p probe) memory() (management, hosted memory) {
	p.visit(func(stat procfs.ProcStat, isHosted bool) {
		process := harness.Must(p.proc.Proc(stat.PID))
		status, maps := harness.Must(process.NewStatus()), harness.Must(process.ProcSMapsRollup())
		part := &management
		if isHosted {
			part = &hosted
		}
		part.heap, part.file, part.share = part.heap+status.RssAnon, part.file+status.RssFile, part.share+maps.Pss
	})
	return management, hosted
}

// percent is the processor use between two readings, as a percentage of one core.
func percent(before, after harness.Load, within time.Duration) float64 {
	if within <= 0 {
		return 0
	}
	return max(0, 100*(after.CPU-before.CPU).Seconds()/within.Seconds())
}

func managementOf(u usage) harness.Load { return u.Management }

func hostedOf(u usage) harness.Load { return u.Hosted }

// usageChart draws memory and processor use during the quickstart.
func usageChart(start time.Time, samples []usage, steps []harness.Step) harness.Chart {
	c := harness.Chart{Title: "Slipway from applying the quickstart until it settled"}
	for _, s := range steps {
		c.Marks = append(c.Marks, harness.Mark{At: s.After, Name: s.Name})
	}
	memory, processor := harness.Panel{Title: "resident memory, MB"}, harness.Panel{Title: "processor use, % of one core"}
	for i, part := range []func(usage) harness.Load{managementOf, hostedOf} {
		name := []string{"management cluster", "hosted control plane"}[i]
		m, p := harness.Line{Name: name}, harness.Line{Name: name}
		for i, s := range samples {
			at := s.At.Sub(start).Seconds()
			m.Add(at, part(s).Megabytes())
			if i >= smoothing {
				earlier := samples[i-smoothing]
				p.Add(at, percent(part(earlier), part(s), s.At.Sub(earlier.At)))
			}
		}
		memory.Lines, processor.Lines = append(memory.Lines, m), append(processor.Lines, p)
	}
	c.Panels = []harness.Panel{memory, processor}
	return c
}

// peakMemory is the largest memory of a part, in MB.
func peakMemory(samples []usage, part func(usage) harness.Load) float64 {
	peak := 0.0
	for _, s := range samples {
		peak = max(peak, part(s).Megabytes())
	}
	return peak
}

// idleness is the activity of an idle management cluster.
type idleness struct {
	before, after  usage
	requests       harness.RequestCounts
	during         time.Duration // of the requests
	memory, hosted memory        // at the end
}

// measureIdle measures an idle management cluster. name is part of the names of the figures, and title of their titles.
func (m *management) measureIdle(ctx context.Context, name, title string) {
	m.Logf("idle %s for %v …", title, m.idle)
	harness.Sleep(ctx, 15*time.Second)
	i := m.observeIdle(ctx)
	m.Add(i.memoryFigures("memory."+name, title)...)
	m.Add(i.activityFigures("idle."+name, title)...)
}

// observeIdle counts requests before and after the measurement of the processor use, because counting uses the processor.
func (m *management) observeIdle(ctx context.Context) (i idleness) {
	before, start := harness.CountRequests(ctx, m.config), time.Now()
	harness.Sleep(ctx, time.Second)
	i.before = m.probe.usage()
	harness.Sleep(ctx, m.idle)
	i.after = m.probe.usage()
	i.memory, i.hosted = m.probe.memory()
	i.requests, i.during = harness.CountRequests(ctx, m.config).Since(before), time.Since(start)
	return i
}

func (i idleness) memoryFigures(name, title string) []harness.Figure {
	mb := func(suffix, title string, bytes uint64) harness.Figure {
		return harness.NewFigure(name+suffix, title, float64(bytes)/1e6, harness.Megabytes)
	}
	figures := []harness.Figure{
		mb("", "memory of the management cluster, idle "+title, uint64(i.after.Management.Memory)).AtMost(750),
		mb(".heap", "  of it heap and stacks", i.memory.heap),
		mb(".file", "  of it pages of files, the binary first of all", i.memory.file),
	}
	if i.after.Hosted.Memory == 0 {
		return figures
	}
	return append(figures,
		mb(".hosted", "memory of the hosted control plane, idle", uint64(i.after.Hosted.Memory)),
		mb(".hosted.heap", "  of it heap and stacks", i.hosted.heap),
		mb(".hosted.share", "  its share, where processes share the binary", i.hosted.share).AtMost(272)) // 260 MiB
}

func (i idleness) activityFigures(name, title string) []harness.Figure {
	within := i.after.At.Sub(i.before.At)
	rate := func(suffix, title string, matches func(harness.Request) bool) harness.Figure {
		return harness.NewFigure(name+suffix, title, float64(i.requests.Total(matches))/i.during.Seconds(), harness.PerSecond)
	}
	figures := []harness.Figure{
		harness.NewFigure(name+".cpu", "processor use of the management cluster, idle "+title,
			percent(i.before.Management, i.after.Management, within), harness.Percent).AtMost(5),
		rate(".writes", "  writes to its API", harness.Request.Writes).AtMost(1),
		rate(".leases", "  of them renewals of leases", func(r harness.Request) bool { return r.Writes() && r.IsLease() }),
		rate(".reads", "  reads of its API", harness.Request.Reads),
	}
	if i.after.Hosted.Memory == 0 {
		return figures
	}
	return append(figures, harness.NewFigure(name+".hosted", "  processor use of the hosted control plane",
		percent(i.before.Hosted, i.after.Hosted, within), harness.Percent))
}
