package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/pause"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

const (
	// settle is the time in which changes are collected before rows are computed.
	settle = 100 * time.Millisecond
	// patience is the time after which a page is shown although some kinds have not been read.
	patience = 20 * time.Second
	// idleRefresh is the interval of refreshes without a change, for rows whose health depends on the time.
	idleRefresh = 30 * time.Second
	// history is the period of timelines and rollouts.
	history = time.Hour
	// maxRemoved is the number of deleted Machines that are remembered.
	maxRemoved = 2000
)

// SourceOptions describe a management cluster. `slipway ui` fills them in for each kubeconfig context.
type SourceOptions struct {
	// Title is shown in the tab, for example the name of the context.
	Title string
	// Config connects to the API server. It is used for reads only.
	Config *rest.Config
	// Namespace limits the page to one namespace; empty: all.
	Namespace string
	// Flags select the management cluster in the commands that the page shows.
	Flags string
	// Plans reads the last plans of an object from the manager; nil if no manager is known.
	Plans PlanReader
	// Metrics reads the metrics of the manager in the text format of Prometheus; nil if no manager is known.
	Metrics func(context.Context) ([]byte, error)
	// Process returns the problem of the processes of the management cluster, if they run on this host; nil: it is unknown.
	Process func() (rootcause.Chain, bool)
	// Now returns the time.
	Now func() time.Time
}

// Source is one management cluster. [Server] has one for each tab of the page.
type Source struct {
	SourceOptions
	// id is the segment of its paths.
	id     string
	mirror *mirror.Mirror
	store  *mirror.Store
	board  *fleet.Board
	events eventCache
	// planned records the plans that are in the store.
	planned planTimes
	actions actionLog
	rows    rowCache
	hub     *hub

	pending mirror.Changes
	changed chan struct{}
	started time.Time

	mu      sync.Mutex
	removed []removedMachine
	ready   bool
	// published is the status of the copy that the pages have received.
	published string
	// dataAt is the last time at which the copy of the Clusters was complete, or zero.
	dataAt time.Time
}

// removedMachine is a Machine that has been deleted.
type removedMachine struct {
	machine *unstructured.Unstructured
	at      time.Time
}

// NewSource returns the source. It sends no request before it runs. `slipway ui` calls it for each management cluster.
func NewSource(o SourceOptions) (*Source, error) {
	s := newSource(o)
	m, err := mirror.New(o.Config, mirror.Options{UserAgent: "slipway-ui", Namespace: o.Namespace, OnChange: s.note, OnStatus: s.wake, Now: s.Now})
	if err != nil {
		return nil, err
	}
	s.attach(m)
	return s, nil
}

func newSource(o SourceOptions) *Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Source{SourceOptions: o, changed: make(chan struct{}, 1), started: o.Now(), rows: rowCache{rows: map[fleet.Key]renderedRow{}}}
}

func (s *Source) attach(m *mirror.Mirror) {
	s.mirror, s.store = m, m.Store
	s.board = fleet.NewBoard(m.Store)
	s.events.reader = m.Live()
}

// note records a change for the next refresh.
func (s *Source) note(c mirror.Change) {
	s.pending.Add(c)
	s.mu.Lock()
	if c.Deleted && isMachine(c.Of) {
		s.removed = append(s.removed[max(0, len(s.removed)+1-maxRemoved):], removedMachine{machine: c.Object, at: s.Now()})
	}
	s.mu.Unlock()
	s.wake()
}

// wake starts a refresh.
func (s *Source) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func isMachine(of rootcause.Ref) bool {
	return of.Group == clusterv1.GroupVersion.Group && of.Kind == "Machine"
}

// Run copies the objects and publishes changes until the context ends. [Server.Serve] starts it.
func (s *Source) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.mirror.Run(ctx) })
	if s.Plans != nil || s.Metrics != nil {
		all.Go(func() { s.watchPlans(ctx) })
	}
	for {
		s.refresh()
		wait := idleRefresh
		if !s.isReady() {
			wait = settle
		}
		if pause.Wait(ctx, wait, s.changed) != nil || pause.Sleep(ctx, settle) != nil {
			return
		}
	}
}

// isReady reports whether rows are computed: all kinds have been read, or the patience has ended.
func (s *Source) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// observe records the status of the copy and the problem of the processes, and reports whether they differ from those that the
// pages have received.
func (s *Source) observe(status mirror.Status, process string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status.Clusters.IsComplete() {
		s.dataAt = now
	}
	text := fmt.Sprintf("%t %v %+v %+v %s", status.Synced, status.Err, status.Clusters, status.Unreadable, process)
	differs := text != s.published
	s.published = text
	return differs
}

// refresh computes the rows of the changed clusters and publishes the changes. It computes no rows before the objects have
// been read, because a row without the objects of its cluster would report them as missing. All pages are updated after the
// first rows, and when objects become unreadable or readable.
func (s *Source) refresh() {
	status := s.mirror.Status()
	now := s.Now()
	differs := s.observe(status, s.processMessage(), now)
	s.events.drop(now)
	if !s.isReady() && !status.Synced && now.Sub(s.started) < patience {
		if differs {
			s.hub.publishSource(s.id)
		}
		return
	}
	s.mu.Lock()
	first := !s.ready
	s.ready = true
	s.mu.Unlock()

	topics := s.touch(s.pending.Take())
	rows := s.board.Refresh(now)
	s.rows.update(request{source: s, now: now}, rows)
	if differs || first {
		s.hub.publishSource(s.id)
		return
	}
	if len(rows) > 0 {
		topics = append(topics, s.topic("fleet"))
		for _, key := range rows {
			topics = append(topics, s.clusterTopic(key))
		}
	}
	if len(topics) > 0 {
		s.hub.publish(topics...)
	}
}

// processProblem returns the problem of the processes of the management cluster, if it is known.
func (s *Source) processProblem() (rootcause.Chain, bool) {
	if s.Process == nil {
		return rootcause.Chain{}, false
	}
	return s.Process()
}

// processMessage identifies the problem of the processes; empty: there is none.
func (s *Source) processMessage() string {
	c, found := s.processProblem()
	if !found {
		return ""
	}
	return c.Root().Message
}

// readState describes how much of a management cluster a page can show. The header and the lists show it.
type readState struct {
	// Loading is true until the Clusters have been listed.
	Loading bool
	// Problem is the reason why the Clusters cannot be read now, or empty.
	Problem string
	// DataAt is the last time at which the data was complete, or zero.
	DataAt time.Time
}

// isComplete reports whether all Clusters are known and changes are received.
func (r readState) isComplete() bool { return !r.Loading && r.Problem == "" }

// text describes which data a page has; empty if the page is live.
func (r readState) text() string {
	switch {
	case r.Problem == "":
		return ""
	case r.DataAt.IsZero():
		return "No data"
	}
	return "Data of " + r.DataAt.UTC().Format("15:04:05") + " UTC"
}

// readState returns how much of the management cluster can be shown now.
func (s *Source) readState() readState {
	clusters := s.mirror.CopyOf(fleet.Cluster{}.Ref().GroupKind())
	s.mu.Lock()
	defer s.mu.Unlock()
	return readState{Loading: clusters.Reason == "" && (!clusters.Listed || !s.ready), Problem: clusters.Reason, DataAt: s.dataAt}
}

// touch marks the rows of the changed clusters as stale, and returns the topics of the changes.
func (s *Source) touch(changes []mirror.Change) []string {
	var topics []string
	for _, c := range changes {
		topics = append(topics, s.objectTopic(c.Of))
		if c.Of.Group == "runtime.cluster.x-k8s.io" {
			topics = append(topics, s.topic("extensions"))
		}
	}
	for _, key := range s.store.ChangedClusters(changes) {
		s.board.Touch(key)
		topics = append(topics, s.clusterTopic(key))
	}
	return topics
}

func (s *Source) topic(name string) string { return s.id + "/" + name }

func (s *Source) clusterTopic(key fleet.Key) string {
	return s.topic("cluster/" + key.Namespace + "/" + key.Name)
}

func (s *Source) objectTopic(of rootcause.Ref) string {
	return s.topic("object/" + of.Group + "/" + of.Kind + "/" + of.Namespace + "/" + of.Name)
}

// removedOf returns the Machines of a cluster that were deleted after a time. The rollout and the timeline of a cluster
// show them.
func (s *Source) removedOf(key fleet.Key, after time.Time) (out []removedMachine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.removed {
		if r.at.After(after) && slices.Contains(s.store.ClustersOf(r.machine), key) {
			out = append(out, r)
		}
	}
	return out
}

// setIDs gives every source a path segment that is derived from its title. The URLs of the pages contain it, so
// [NewServer] sets it once.
func setIDs(sources []*Source) {
	taken := map[string]bool{}
	for _, s := range sources {
		s.id = slug(s.Title)
		for n := 2; taken[s.id]; n++ {
			s.id = fmt.Sprintf("%s-%d", slug(s.Title), n)
		}
		taken[s.id] = true
	}
}

// slug returns the letters and digits of a title in lower case, with hyphens between them.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	out := strings.Join(words, "-")
	if out == "" {
		out = "cluster"
	}
	return out[:min(len(out), 40)]
}
