package main

import (
	"context"
	"time"

	"github.com/slipwayhq/slipway/test/bench/latency"
	"github.com/slipwayhq/slipway/test/bench/pair"
	"github.com/slipwayhq/slipway/test/bench/requests"
	"github.com/slipwayhq/slipway/test/bench/settle"
)

// measurement is what was found of one number of clusters. Processor seconds, writes and reads are from before the first
// object was created until everything had settled, what the benchmark itself asked for included.
type measurement struct {
	Clusters    int     `json:"clusters"`
	WallSeconds float64 `json:"wall_seconds"` // from the first object until the last Cluster is Available
	ManagerCPU  float64 `json:"manager_cpu_seconds"`
	ServerCPU   float64 `json:"apiserver_cpu_seconds"`
	Peaks               // while the clusters come up, rest and are deleted
	Writes      float64 `json:"api_writes_per_cluster"` // leases apart
	Reads       float64 `json:"api_reads_per_cluster"`  // leases apart
	// Refused are those of the writes that the API server answered with an error.
	Refused float64 `json:"refused_writes_per_cluster"`
	// IdleRequests are all requests of any kind that the API server answered, per second; IdleCPU is of both processes, in
	// percent of one core.
	IdleRequests   float64 `json:"idle_requests_per_second"`
	IdleWrites     float64 `json:"idle_writes"` // leases apart
	IdleCPU        float64 `json:"idle_cpu_percent"`
	IdleManagerCPU float64 `json:"idle_manager_cpu_percent"`
	// What the host of a virtual machine gave to others meanwhile, in percent of the time of all processors.
	Stolen     float64 `json:"stolen_percent"`
	IdleStolen float64 `json:"idle_stolen_percent"`
	// ReconcileP99 is of the Machine controller, while the clusters came up.
	ReconcileP99    float64         `json:"reconcile_p99_seconds"`
	DeletionSeconds float64         `json:"deletion_seconds"` // until no Cluster and no Machine is left
	LeftSeconds     float64         `json:"leftover_seconds"` // from then on, until the garbage collector had deleted the rest
	Deletion        deletion        `json:"deletion"`
	Changes         *changes        `json:"changes,omitempty"` // of the class, where the fleet has one
	Upgrade         *upgrade        `json:"upgrade,omitempty"`
	Growth          []growth        `json:"growth,omitempty"`
	Growing         Peaks           `json:"growth_peaks"`             // while a MachineDeployment grows and shrinks
	ShrinkSeconds   float64         `json:"shrink_seconds,omitempty"` // from the most workers to one
	Reconciles      []reconciles    `json:"reconciles"`
	WriteLines      []requests.Line `json:"writes"`
	IdleLines       []requests.Line `json:"idle_requests"`
	ReadLines       []requests.Line `json:"reads"`
	// The paces of the machine (machine.Pace) are in nanoseconds.
	PaceBefore time.Duration `json:"pace_before"`
	PaceAfter  time.Duration `json:"pace_after"`
}

// deletion is what it cost to delete all, until nothing was written any more: Secrets and templates go last.
type deletion struct {
	ManagerCPU float64         `json:"manager_cpu_seconds"`
	ServerCPU  float64         `json:"apiserver_cpu_seconds"`
	Writes     float64         `json:"api_writes_per_cluster"` // leases apart
	Stolen     float64         `json:"stolen_percent"`
	WriteLines []requests.Line `json:"writes"`
}

// growth is a MachineDeployment that became larger.
type growth struct {
	From         int             `json:"from"`
	To           int             `json:"to"`
	Seconds      float64         `json:"seconds"` // until all Machines are Running
	WritesPer    float64         `json:"api_writes_per_worker"`
	ManagerCPU   float64         `json:"manager_cpu_seconds_per_worker"`
	ServerCPU    float64         `json:"apiserver_cpu_seconds_per_worker"`
	ReconcileP99 float64         `json:"machine_reconcile_p99_seconds"`
	Stolen       float64         `json:"stolen_percent"`
	Reconciles   []reconciles    `json:"reconciles"`
	WriteLines   []requests.Line `json:"writes"`
	ReadLines    []requests.Line `json:"reads"`
}

// reconciles is how one controller did meanwhile.
type reconciles struct {
	Controller string  `json:"controller"`
	Count      uint64  `json:"count"`
	P50        float64 `json:"p50_seconds"`
	P99        float64 `json:"p99_seconds"`
}

// machineController is the name of the controller that the goal is about.
const machineController = "machine"

func (m *measurement) judgeComeUp(before, after mark) {
	asked := after.asked.Since(before.asked)
	m.ManagerCPU = (after.usage.Manager.CPU - before.usage.Manager.CPU).Seconds()
	m.ServerCPU = (after.usage.Server.CPU - before.usage.Server.CPU).Seconds()
	m.Writes = float64(asked.Total(settle.IsWrite)) / float64(m.Clusters)
	m.Reads = float64(asked.Total(settle.IsRead)) / float64(m.Clusters)
	m.Refused = float64(asked.Total(func(r requests.Request) bool { return settle.IsWrite(r) && r.Refused })) / float64(m.Clusters)
	m.WriteLines, m.ReadLines = asked.Lines(settle.IsWrite), asked.Lines(settle.IsRead)
	m.Reconciles, m.ReconcileP99 = passes(before, after)
	m.Stolen = 100 * after.cpu.StolenSince(before.cpu)
}

// passes is how the controllers did between two marks, and the p99 of the one that the goal is about.
func passes(before, after mark) (all []reconciles, machines float64) {
	took := latency.Since(after.latency, before.latency)
	for _, name := range latency.Names(took) {
		h := took[name]
		all = append(all, reconciles{name, h.Total(), h.Quantile(0.5), h.Quantile(0.99)})
	}
	return all, took[machineController].Quantile(0.99)
}

func (m *measurement) judgeIdle(before, after mark) {
	asked := after.asked.Since(before.asked)
	seconds := after.at.Sub(before.at).Seconds()
	m.IdleRequests = float64(asked.Total(func(requests.Request) bool { return true })) / seconds
	m.IdleWrites = float64(asked.Total(settle.IsWrite))
	m.IdleLines = asked.Lines(func(requests.Request) bool { return true })
	manager := after.usage.Manager.CPU - before.usage.Manager.CPU
	server := after.usage.Server.CPU - before.usage.Server.CPU
	m.IdleStolen = 100 * after.cpu.StolenSince(before.cpu)
	m.IdleManagerCPU = 100 * manager.Seconds() / seconds
	m.IdleCPU = 100 * (manager + server).Seconds() / seconds
}

func (m *measurement) judgeDeletion(before, after mark) {
	asked := after.asked.Since(before.asked)
	m.Deletion = deletion{
		ManagerCPU: (after.usage.Manager.CPU - before.usage.Manager.CPU).Seconds(),
		ServerCPU:  (after.usage.Server.CPU - before.usage.Server.CPU).Seconds(),
		Writes:     float64(asked.Total(settle.IsWrite)) / float64(m.Clusters),
		Stolen:     100 * after.cpu.StolenSince(before.cpu),
		WriteLines: asked.Lines(settle.IsWrite),
	}
}

// judge adds what was used and asked for, per worker.
func (g *growth) judge(before, after mark) {
	asked, added := after.asked.Since(before.asked), float64(g.To-g.From)
	g.WritesPer = float64(asked.Total(settle.IsWrite)) / added
	g.ManagerCPU = (after.usage.Manager.CPU - before.usage.Manager.CPU).Seconds() / added
	g.ServerCPU = (after.usage.Server.CPU - before.usage.Server.CPU).Seconds() / added
	g.Reconciles, g.ReconcileP99 = passes(before, after)
	g.Stolen = 100 * after.cpu.StolenSince(before.cpu)
	g.WriteLines, g.ReadLines = asked.Lines(settle.IsWrite), asked.Lines(settle.IsRead)
}

// Peaks are the most memory that was seen, in millions of bytes.
type Peaks struct {
	Both    float64 `json:"peak_rss_mb"` // of both processes at one moment
	Manager float64 `json:"manager_peak_rss_mb"`
	Server  float64 `json:"apiserver_peak_rss_mb"`
}

func (p *Peaks) add(u pair.Usage) {
	p.Both = max(p.Both, megabytes(u.Manager.Memory+u.Server.Memory))
	p.Manager, p.Server = max(p.Manager, megabytes(u.Manager.Memory)), max(p.Server, megabytes(u.Server.Memory))
}

// peakWatch samples memory until ended.
type peakWatch struct {
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// sampleEvery is the time between two samples.
const sampleEvery = 250 * time.Millisecond

func watchPeaks(ctx context.Context, p *pair.Pair, most *Peaks) *peakWatch {
	ctx, stop := context.WithCancel(ctx)
	w := &peakWatch{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			u, err := p.Usage()
			if err != nil {
				w.err = err
				return
			}
			most.add(u)
			_ = settle.Pause(ctx, sampleEvery) // an error ends the loop
		}
	}()
	return w
}

func (w *peakWatch) end() error {
	w.stop()
	<-w.done
	return w.err
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }
