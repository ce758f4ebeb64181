package fleet

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

// report is the result of all numbers of clusters.
type report struct {
	Machine    harness.Machine `json:"machine"`
	OfClass    bool            `json:"of_class,omitempty"`
	OnMachines bool            `json:"on_machines,omitempty"` // control planes
	Sizes      []measurement   `json:"sizes"`
}

// measurement is the result of one number of clusters. The embedded cost is from the first object until everything had
// settled, including the requests of the benchmark. Writes and reads do not include Leases.
type measurement struct {
	Clusters    int     `json:"clusters"`
	WallSeconds float64 `json:"wall_seconds"` // until the last Cluster is Available
	clusterCost
	Peaks                   // during creation, rest and deletion
	Reads           float64 `json:"api_reads_per_cluster"`
	Refused         float64 `json:"refused_writes_per_cluster"`
	IdleRequests    float64 `json:"idle_requests_per_second"` // of all kinds
	IdleWrites      float64 `json:"idle_writes"`
	IdleCPU         float64 `json:"idle_cpu_percent"` // of one core, for both processes
	IdleManagerCPU  float64 `json:"idle_manager_cpu_percent"`
	IdleStolen      float64 `json:"idle_stolen_percent"`
	ReconcileP99    float64 `json:"reconcile_p99_seconds"` // of the Machine controller
	DeletionSeconds float64 `json:"deletion_seconds"`      // until no Cluster and no Machine is left
	LeftSeconds     float64 `json:"leftover_seconds"`      // from then until the garbage collector has deleted the rest

	Deletion      clusterCost           `json:"deletion"`
	Changes       *changes              `json:"changes,omitempty"`
	Upgrade       *upgrade              `json:"upgrade,omitempty"`
	Growth        []growth              `json:"growth,omitempty"`
	Growing       Peaks                 `json:"growth_peaks"` // during changes, upgrade and scaling
	ShrinkSeconds float64               `json:"shrink_seconds,omitempty"`
	Reconciles    []reconciles          `json:"reconciles"`
	IdleLines     []harness.RequestLine `json:"idle_requests"`
	ReadLines     []harness.RequestLine `json:"reads"`
	PaceBefore    time.Duration         `json:"pace_before"`
	PaceAfter     time.Duration         `json:"pace_after"`
}

// clusterCost is the cost of a fleet between two readings.
type clusterCost struct {
	ManagerCPU float64               `json:"manager_cpu_seconds"`
	ServerCPU  float64               `json:"apiserver_cpu_seconds"`
	Writes     float64               `json:"api_writes_per_cluster"`
	Stolen     float64               `json:"stolen_percent"`
	WriteLines []harness.RequestLine `json:"writes"`
}

func newClusterCost(from, to reading, clusters int) clusterCost {
	requests := to.requests.Since(from.requests)
	return clusterCost{
		ManagerCPU: (to.usage.Manager.CPU - from.usage.Manager.CPU).Seconds(),
		ServerCPU:  (to.usage.Server.CPU - from.usage.Server.CPU).Seconds(),
		Writes:     float64(requests.Total(harness.IsWrite)) / float64(clusters),
		Stolen:     100 * to.cpu.StolenSince(from.cpu),
		WriteLines: requests.Lines(harness.IsWrite),
	}
}

// changes are the changes of the class.
type changes struct {
	Metadata change `json:"metadata"`
	Template change `json:"template"`
}

type change struct {
	Seconds    float64 `json:"seconds"` // until all Machines have the change
	Replaced   int     `json:"machines_replaced"`
	Writes     float64 `json:"api_writes_per_cluster"`
	ManagerCPU float64 `json:"manager_cpu_seconds_per_cluster"`
	Stolen     float64 `json:"stolen_percent"`
}

// upgrade is the upgrade of all clusters at once.
type upgrade struct {
	change
	States      int      `json:"etcd_states"` // reported by KubeadmControlPlanes
	BelowQuorum []string `json:"etcd_states_below_quorum"`
}

// growth is the scaling of a MachineDeployment.
type growth struct {
	From         int                   `json:"from"`
	To           int                   `json:"to"`
	Seconds      float64               `json:"seconds"` // until all Machines are Running
	WritesPer    float64               `json:"api_writes_per_worker"`
	ManagerCPU   float64               `json:"manager_cpu_seconds_per_worker"`
	ServerCPU    float64               `json:"apiserver_cpu_seconds_per_worker"`
	ReconcileP99 float64               `json:"machine_reconcile_p99_seconds"`
	Stolen       float64               `json:"stolen_percent"`
	Reconciles   []reconciles          `json:"reconciles"`
	WriteLines   []harness.RequestLine `json:"writes"`
	ReadLines    []harness.RequestLine `json:"reads"`
}

// reconciles are the reconciliations of one controller.
type reconciles struct {
	Controller string  `json:"controller"`
	Count      uint64  `json:"count"`
	P50        float64 `json:"p50_seconds"`
	P99        float64 `json:"p99_seconds"`
}

// Peaks are the largest resident memory in MB.
type Peaks struct {
	Both    float64 `json:"peak_rss_mb"` // of both processes at one time
	Manager float64 `json:"manager_peak_rss_mb"`
	Server  float64 `json:"apiserver_peak_rss_mb"`
}

func (p *Peaks) add(u harness.Usage) {
	manager, server := u.Manager.Megabytes(), u.Server.Megabytes()
	p.Both, p.Manager, p.Server = max(p.Both, manager+server), max(p.Manager, manager), max(p.Server, server)
}

func (m *measurement) addCreation(from, to reading) {
	m.clusterCost = newClusterCost(from, to, m.Clusters)
	requests, clusters := to.requests.Since(from.requests), float64(m.Clusters)
	m.Reads = float64(requests.Total(harness.IsRead)) / clusters
	m.Refused = float64(requests.Total(func(r harness.Request) bool { return harness.IsWrite(r) && r.Refused })) / clusters
	m.ReadLines = requests.Lines(harness.IsRead)
	m.Reconciles, m.ReconcileP99 = reconcilesBetween(from, to)
}

// reconcilesBetween also returns the p99 of the Machine controller.
func reconcilesBetween(from, to reading) (all []reconciles, machines float64) {
	since := to.reconciles.Since(from.reconciles)
	for _, name := range since.Controllers() {
		h := since[name]
		all = append(all, reconciles{name, h.Total(), h.Quantile(0.5), h.Quantile(0.99)})
	}
	return all, since["machine"].Quantile(0.99)
}

func (m *measurement) addIdle(from, to reading) {
	cost, seconds := newClusterCost(from, to, 1), to.at.Sub(from.at).Seconds()
	every := func(harness.Request) bool { return true }
	requests := to.requests.Since(from.requests)
	m.IdleRequests, m.IdleLines = float64(requests.Total(every))/seconds, requests.Lines(every)
	m.IdleWrites, m.IdleStolen = cost.Writes, cost.Stolen
	m.IdleManagerCPU, m.IdleCPU = 100*cost.ManagerCPU/seconds, 100*(cost.ManagerCPU+cost.ServerCPU)/seconds
}

func (g *growth) addCost(from, to reading) {
	cost, added := newClusterCost(from, to, 1), float64(g.To-g.From)
	g.WritesPer, g.ManagerCPU, g.ServerCPU = cost.Writes/added, cost.ManagerCPU/added, cost.ServerCPU/added
	g.Reconciles, g.ReconcileP99 = reconcilesBetween(from, to)
	g.Stolen, g.WriteLines, g.ReadLines = cost.Stolen, cost.WriteLines, to.requests.Since(from.requests).Lines(harness.IsRead)
}

// write prints the table and writes the files. The JSON of one number of clusters is one object.
func (r report) write(out string) {
	switch len(r.Sizes) {
	case 0:
		return
	case 1:
		harness.WriteJSON(out, struct {
			measurement
			Machine harness.Machine `json:"machine"`
		}{r.Sizes[0], r.Machine})
	default:
		harness.WriteJSON(out, r)
		harness.WriteFile(harness.Sibling(out, ".svg"), r.chart().SVG())
	}
	fmt.Print(r.table())
}

// goals are upper limits by number of clusters; 0 stands for all numbers.
type goals map[int]float64

// row is a row of the table for one number of clusters.
type row struct {
	title string
	value float64
	goals goals
}

// rows returns the rows of one number of clusters. Clusters of a class have different goals, also with control planes on
// Machines.
func (r report) rows(m measurement) []row {
	goal := func(plain, ofClass, onMachines goals) goals {
		switch {
		case r.OnMachines:
			return onMachines
		case r.OfClass:
			return ofClass
		}
		return plain
	}
	n := float64(m.Clusters)
	rows := []row{
		{"all Available, s", m.WallSeconds, goal(goals{1: 3, 100: 60, 1000: 720}, goals{1: 3, 100: 30, 1000: 360}, goals{1: 4, 100: 75, 1000: 780})},
		{"manager, CPU s per cluster", m.ManagerCPU / n, goal(goals{0: 0.4}, goals{0: 0.4}, goals{0: 0.8})},
		{"API server, CPU s per cluster", m.ServerCPU / n, goal(goals{0: 1}, nil, nil)},
		{"API writes per cluster", m.Writes, goal(goals{0: 60}, goals{0: 70}, goals{0: 90})},
		{"refused API writes per cluster", m.Refused, goal(nil, goals{0: 0}, nil)},
		{"API reads per cluster", m.Reads, nil},
		{"manager, peak MB", m.Peaks.Manager, goal(goals{100: 300}, nil, goals{100: 350})},
		{"API server, peak MB", m.Peaks.Server, goal(goals{100: 1200}, nil, nil)},
		{"both, peak MB", m.Both, nil},
		{"Machine reconcile p99, s", m.ReconcileP99, goal(goals{100: 1}, nil, nil)},
		{"idle, requests/s", m.IdleRequests, goal(goals{100: 0.5}, nil, nil)},
		{"idle: writes, leases apart", m.IdleWrites, goal(nil, goals{100: 0}, nil)},
		{"idle, % of a core", m.IdleCPU, goal(goals{100: 3}, nil, goals{100: 5})},
		{"deletion of all, s", m.DeletionSeconds, goal(goals{100: 40}, nil, goals{100: 40})},
		{"deletion by the garbage collector afterwards, s", m.LeftSeconds, goals{1000: 60}},
		{"deletion: manager, CPU s per cluster", m.Deletion.ManagerCPU / n, nil},
		{"deletion: API server, CPU s per cluster", m.Deletion.ServerCPU / n, nil},
		{"deletion: API writes per cluster", m.Deletion.Writes, nil},
		{"taken by others: while they come up, %", m.Stolen, nil},
		{"taken by others: while idle, %", m.IdleStolen, nil},
		{"taken by others: while they are deleted, %", m.Deletion.Stolen, nil},
	}
	if c := m.Changes; c != nil {
		rows = append(rows,
			row{"label of the class: on all Machines, s", c.Metadata.Seconds, goals{100: 10}},
			row{"label of the class: Machines replaced", float64(c.Metadata.Replaced), goals{0: 0}},
			row{"label of the class: API writes per cluster", c.Metadata.Writes, nil},
			row{"template of the class: all replaced, s", c.Template.Seconds, goals{100: 60}},
			row{"template of the class: API writes per cluster", c.Template.Writes, nil},
			row{"template of the class: manager, CPU s per cluster", c.Template.ManagerCPU, nil})
	}
	if u := m.Upgrade; u != nil {
		rows = append(rows,
			row{"upgrade of all at once: every Machine replaced, s", u.Seconds, nil},
			row{"upgrade: Machines replaced", float64(u.Replaced), nil},
			row{"upgrade: API writes per cluster", u.Writes, nil},
			row{"upgrade: manager, CPU s per cluster", u.ManagerCPU, nil},
			row{"upgrade: states of etcd that were reported", float64(u.States), nil},
			row{"upgrade: of them below quorum", float64(len(u.BelowQuorum)), goals{0: 0}},
			row{"upgrade: taken by others, %", u.Stolen, nil})
	}
	return append(append(rows, m.growthRows()...),
		row{"pace of the machine before, µs", float64(m.PaceBefore) / 1e3, nil}, row{"after, µs", float64(m.PaceAfter) / 1e3, nil})
}

func (m measurement) growthRows() []row {
	var rows []row
	for _, g := range m.Growth {
		goal := func(limit float64) goals {
			if g.From != 1 || g.To != firstScale {
				return nil
			}
			return goals{0: limit}
		}
		name := fmt.Sprintf("%d→%d workers: ", g.From, g.To)
		rows = append(rows,
			row{name + "all Running, s", g.Seconds, goal(6)},
			row{name + "API writes per worker", g.WritesPer, goal(16)},
			row{name + "manager CPU s per worker", g.ManagerCPU, goal(0.06)},
			row{name + "API server CPU s per worker", g.ServerCPU, nil},
			row{name + "taken by others, %", g.Stolen, nil})
	}
	if n := len(m.Growth); n > 0 {
		rows = append(rows, row{fmt.Sprintf("%d→1 workers: all others gone, s", m.Growth[n-1].To), m.ShrinkSeconds, nil},
			row{"meanwhile: manager, peak MB", m.Growing.Manager, nil}, row{"meanwhile: API server, peak MB", m.Growing.Server, nil})
	}
	return rows
}

// table has one column for each number of clusters.
func (r report) table() string {
	m, w := r.Machine, &strings.Builder{}
	fmt.Fprintf(w, "%s: %d cores, %s; slipway %s, Kubernetes %s, %s; load before %.2f\n\n", m.Date, m.Cores, m.System, m.Slipway, m.Kubernetes, m.Go, m.LoadBefore)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	write := func(cells []string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	header := []string{"CLUSTERS"}
	columns := make([]map[string]string, len(r.Sizes))
	for i, s := range r.Sizes {
		header = append(header, strconv.Itoa(s.Clusters))
		columns[i] = map[string]string{}
		for _, row := range r.rows(s) {
			columns[i][row.title] = row.cell(s.Clusters)
		}
	}
	write(append(header, "GOAL"))
	for _, row := range r.rows(r.Sizes[0]) {
		cells := []string{row.title}
		for _, column := range columns {
			cells = append(cells, cmp.Or(column[row.title], "-"))
		}
		write(append(cells, row.goals.String()))
	}
	harness.Checkf(t.Flush(), "print the table")
	fmt.Fprintln(w, "\n* misses the goal")
	return w.String()
}

// cell formats the value with up to three significant digits and marks a missed goal.
func (r row) cell(clusters int) string {
	digits := 0
	switch {
	case r.value < 1:
		digits = 3
	case r.value < 100:
		digits = 1
	}
	text := strconv.FormatFloat(r.value, 'f', digits, 64)
	goal, ok := r.goals[clusters]
	if !ok {
		goal, ok = r.goals[0]
	}
	if ok && r.value > goal {
		return "*" + text
	}
	return text
}

func (g goals) String() string {
	var all []string
	for _, n := range []int{0, 1, 100, 1000} {
		if limit, ok := g[n]; ok {
			text := "≤ " + strconv.FormatFloat(limit, 'f', -1, 64)
			if n > 0 {
				text += fmt.Sprintf(" at %d", n)
			}
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// chart shows the cost of a cluster by the number of clusters.
func (r report) chart() harness.Chart {
	c := harness.Chart{Title: "Slipway with simulated clusters", Axis: harness.Axis{Title: "clusters", Log: true}}
	c.Panels = []harness.Panel{
		{Title: "seconds per cluster until all are Available", Lines: []harness.Line{{Name: "wall"}}},
		{Title: "CPU seconds per cluster", Lines: []harness.Line{{Name: "manager"}, {Name: "API server"}}},
		{Title: "API requests per cluster", Lines: []harness.Line{{Name: "writes"}, {Name: "reads"}}},
		{Title: "peak memory, MB", Lines: []harness.Line{{Name: "manager"}, {Name: "API server"}}},
	}
	for _, m := range r.Sizes {
		n := float64(m.Clusters)
		c.Axis.Ticks = append(c.Axis.Ticks, n)
		for i, values := range [][]float64{{m.WallSeconds / n}, {m.ManagerCPU / n, m.ServerCPU / n}, {m.Writes, m.Reads}, {m.Peaks.Manager, m.Peaks.Server}} {
			for j, value := range values {
				c.Panels[i].Lines[j].Add(n, value)
			}
		}
	}
	return c
}
