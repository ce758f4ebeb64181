package workload_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	controlplaneworkload "github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a workload cluster, its members of etcd and the certificates of its API servers.
type world struct {
	client  client.Client
	down    error // of the connection
	noEtcd  error
	members []etcd.Member
	// noQuorum: the members do not agree on anything, though one may still see a leader.
	noQuorum, seesLeader bool
	// known is what each member says of the members, joining what they are once the list was read for the first time; nil: nothing happens.
	known, joining []etcd.Member

	silent map[string]bool // members and API servers by Node that do not answer
	asked  []string        // Nodes whose members were connected to

	mu       sync.Mutex
	statuses []string // Nodes whose members were asked about themselves
}

func (w *world) Client(context.Context, client.ObjectKey) (client.Client, error) {
	return w.client, w.down
}

func (w *world) Etcd(_ context.Context, _ client.ObjectKey, nodes []string) (etcd.Cluster, error) {
	w.asked = nodes
	return asked{w}, w.noEtcd
}

func (w *world) Expiry(_ context.Context, s controlplaneworkload.ExpiryServer) (time.Time, error) {
	if w.silent[s.Node] {
		return time.Time{}, fault.New(fault.Unreachable, "CertificateUnknown", "it does not respond")
	}
	return now.AddDate(1, 0, 0), nil
}

// asked are the members as they answer.
type asked struct{ *world }

func (a asked) Members(context.Context) ([]etcd.Member, error) {
	if a.noQuorum {
		return nil, fault.New(fault.Unreachable, "EtcdNoLeader", "the etcd cluster has no leader")
	}
	members := a.members
	if a.joining != nil {
		a.world.members, a.world.known, a.world.joining = a.joining, a.joining, nil
	}
	return members, nil
}

func (a asked) Status(_ context.Context, node string) (etcd.Status, error) {
	a.mu.Lock()
	a.statuses = append(a.statuses, node)
	a.mu.Unlock()
	if a.silent[node] {
		return etcd.Status{}, fault.New(fault.Unreachable, "EtcdMemberUnreachable", "the etcd member on Node %s does not respond", node)
	}
	if a.noQuorum && !a.seesLeader {
		return etcd.Status{ID: 1, ClusterID: 7, Members: a.members}, nil
	}
	return etcd.Status{ID: 1, ClusterID: 7, Leader: 1, Members: a.known}, nil
}

func (asked) MoveLeader(context.Context, uint64) error   { return errors.New("it is only read") }
func (asked) RemoveMember(context.Context, uint64) error { return errors.New("it is only read") }
func (asked) Close() error                               { return nil }

func node(name string, ready corev1.ConditionStatus) client.Object {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

func pod(name string) client.Object {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"tier": "control-plane"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func kubeadmConfig() client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}}
}

// seen is what matters of a state.
type seen struct {
	Problem, EtcdProblem, Leader string
	Initialized                  bool
	Nodes, Pods                  []string
	Statuses, Expiry             map[string]string
}

func of(s controlplaneworkload.State) seen {
	out := seen{Problem: s.Problem, EtcdProblem: s.Etcd.Problem, Leader: s.Etcd.Leader(), Initialized: s.Initialized}
	for _, name := range []string{"a", "b", "c", "stray"} {
		if s.Nodes[name] != nil {
			out.Nodes = append(out.Nodes, name)
		}
		if s.PodOf(controlplaneworkload.APIServer, name) != nil {
			out.Pods = append(out.Pods, name)
		}
	}
	for name, status := range s.Etcd.Statuses {
		if out.Statuses == nil {
			out.Statuses = map[string]string{}
		}
		out.Statuses[name] = status.Problem
	}
	for name, at := range s.Expiry {
		if out.Expiry == nil {
			out.Expiry = map[string]string{}
		}
		out.Expiry[name] = at.Format(time.DateOnly)
	}
	return out
}

// What does not respond is in the state, with why; of what answers everything is there.
func TestRead(t *testing.T) { // KC-12, KC-13, KC-14, KC-24, KC-33
	whole := []client.Object{
		kubeadmConfig(), node("a", corev1.ConditionTrue), node("b", corev1.ConditionTrue), node("c", corev1.ConditionUnknown), node("stray", corev1.ConditionTrue),
		pod("kube-apiserver-a"), pod("kube-apiserver-b"), pod("kube-apiserver-c"), pod("etcd-a"),
	}
	members := []etcd.Member{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}, {ID: 3, Name: "c"}, {ID: 4, Name: "stray"}}
	servers := []controlplaneworkload.ExpiryServer{{Node: "a"}, {Node: "b"}, {Node: "c"}, {Node: "gone"}}
	for name, tc := range map[string]struct {
		objects  []client.Object
		world    *world
		external bool
		want     seen
	}{
		"no connection":    {nil, &world{down: fault.New(fault.Unreachable, "NotConnected", "There is no connection")}, false, seen{Problem: "There is no connection"}},
		"kubeadm runs yet": {nil, &world{}, false, seen{}},
		"all": {whole, &world{members: members}, false, seen{
			Initialized: true, Leader: "a", Nodes: []string{"a", "b", "c", "stray"}, Pods: []string{"a", "b", "c"},
			Statuses: map[string]string{"a": "", "b": "", "c": "Node c is not ready"},
			Expiry:   map[string]string{"a": "2027-01-02", "b": "2027-01-02"},
		}},
		"one is silent": {whole, &world{members: members, silent: map[string]bool{"b": true}}, false, seen{
			Initialized: true, Leader: "a", Nodes: []string{"a", "b", "c", "stray"}, Pods: []string{"a", "b", "c"},
			Statuses: map[string]string{"a": "", "b": "the etcd member on Node b does not respond", "c": "Node c is not ready"},
			Expiry:   map[string]string{"a": "2027-01-02"},
		}},
		"no quorum": {whole, &world{members: members, noQuorum: true, silent: map[string]bool{"b": true}}, false, seen{
			Initialized: true, Nodes: []string{"a", "b", "c", "stray"}, Pods: []string{"a", "b", "c"},
			Statuses: map[string]string{"a": "", "b": "the etcd member on Node b does not respond", "c": "Node c is not ready"},
			Expiry:   map[string]string{"a": "2027-01-02"},
		}},
		"no list of members": {whole, &world{members: members, noQuorum: true, seesLeader: true}, false, seen{
			Initialized: true, EtcdProblem: "the etcd cluster has no leader", Nodes: []string{"a", "b", "c"}, Pods: []string{"a", "b", "c"},
			Statuses: map[string]string{"a": "", "b": "", "c": "Node c is not ready"}, Expiry: map[string]string{"a": "2027-01-02", "b": "2027-01-02"},
		}},
		"no authority of etcd": {whole, &world{noEtcd: fault.New(fault.Unreachable, "EtcdAuthorityMissing", "Secret x has no key")}, false, seen{
			Initialized: true, EtcdProblem: "Secret x has no key", Nodes: []string{"a", "b", "c"}, Pods: []string{"a", "b", "c"},
			Statuses: map[string]string{"a": "Node a is not ready", "b": "Node b is not ready", "c": "Node c is not ready"},
			Expiry:   map[string]string{"a": "2027-01-02", "b": "2027-01-02"},
		}},
		"etcd elsewhere": {whole, &world{members: members}, true, seen{
			Initialized: true, Nodes: []string{"a", "b", "c"}, Pods: []string{"a", "b", "c"}, Expiry: map[string]string{"a": "2027-01-02", "b": "2027-01-02"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world
			w.client = fake.NewClientBuilder().WithObjects(tc.objects...).Build()
			got, err := controlplaneworkload.Reader{Clusters: w, Members: w, Certificates: w, Now: func() time.Time { return now }}.Read(t.Context(), controlplaneworkload.ReadRequest{
				Nodes: []string{"a", "b"}, Leaving: []string{"c"}, Managed: !tc.external, Certificates: servers,
			})
			if err != nil || !got.At.Equal(now) {
				t.Fatalf("%v, at %v", err, got.At)
			}
			if diff := cmp.Diff(tc.want, of(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, node := range w.asked {
				if node == "c" {
					t.Error("the member of a Node that is not ready was asked")
				}
			}
		})
	}
}

// A member that joins while the others are asked makes none of them unhealthy: they are asked again, and once alone where they do not agree.
func TestMemberThatJoins(t *testing.T) { // KC-13
	two := []etcd.Member{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}}
	three := append(slices.Clone(two), etcd.Member{ID: 3, Name: "c"})
	for name, c := range map[string]struct {
		w     *world
		asked int
		want  []etcd.Member
	}{
		"joins":          {&world{members: two, joining: three}, 5, three},
		"nothing":        {&world{members: two, known: two}, 2, two},
		"do not agree":   {&world{members: two, known: three}, 4, two},
		"do not say":     {&world{members: two}, 2, two},
		"leaves":         {&world{members: three, joining: two}, 5, two},
		"without quorum": {&world{members: two, known: three, noQuorum: true}, 3, two},
	} {
		w := c.w
		w.client = fake.NewClientBuilder().WithObjects(kubeadmConfig(), node("a", corev1.ConditionTrue), node("b", corev1.ConditionTrue), node("c", corev1.ConditionTrue)).Build()
		got, err := controlplaneworkload.Reader{Clusters: w, Members: w, Certificates: w, Now: func() time.Time { return now }}.Read(t.Context(), controlplaneworkload.ReadRequest{
			Nodes: []string{"a", "b", "c"}, Managed: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got.Etcd.Members); diff != "" || len(w.statuses) != c.asked {
			t.Errorf("%s: asked %v (-want +got)\n%s", name, w.statuses, diff)
		}
	}
}

// Who is no member any more is not asked: it would be silent until the time is over.
func TestMembersThatLeft(t *testing.T) { // KC-13
	w := &world{members: []etcd.Member{{ID: 1, Name: "a"}, {ID: 3, Name: "c"}}}
	w.client = fake.NewClientBuilder().WithObjects(
		kubeadmConfig(), node("a", corev1.ConditionTrue), node("b", corev1.ConditionTrue), node("c", corev1.ConditionTrue), node("d", corev1.ConditionTrue),
	).Build()
	got, err := controlplaneworkload.Reader{Clusters: w, Members: w, Certificates: w, Now: func() time.Time { return now }}.Read(t.Context(), controlplaneworkload.ReadRequest{
		Nodes: []string{"a", "b"}, Leaving: []string{"c", "d"}, Managed: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(w.statuses)
	if diff := cmp.Diff([]string{"a", "c"}, w.statuses); diff != "" {
		t.Errorf("asked about themselves (-want +got)\n%s", diff)
	}
	want := map[string]string{"a": "", "b": "Node b has no etcd member", "c": "", "d": "Node d has no etcd member"}
	if diff := cmp.Diff(want, of(got).Statuses); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A cluster that answers with an error was not read: what is known of it stays.
func TestReadRefused(t *testing.T) {
	w := &world{client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("forbidden")
		},
	}).Build()}
	_, err := controlplaneworkload.Reader{Clusters: w, Members: w, Certificates: w, Now: func() time.Time { return now }}.Read(t.Context(), controlplaneworkload.ReadRequest{})
	if err == nil || !strings.Contains(err.Error(), "reading ConfigMap kubeadm-config: forbidden") {
		t.Errorf("got %v", err)
	}
}

// A probe that fails is a reason to read at once, and so is one that is answered of a cluster that could not be read; neither is twice.
func TestIsBehind(t *testing.T) { // KC-16
	read := func(after time.Duration) controlplaneworkload.State {
		return controlplaneworkload.State{At: now.Add(after)}
	}
	unread := func(after time.Duration) controlplaneworkload.State {
		return controlplaneworkload.State{At: now.Add(after), Problem: "it does not respond"}
	}
	good := slipwayworkload.Health{Connected: true, LastProbeSuccess: now}
	failing := slipwayworkload.Health{Connected: true, LastProbeSuccess: now, ConsecutiveFailures: 1}
	closed := slipwayworkload.Health{LastProbeSuccess: now, ConsecutiveFailures: 5}
	for name, tc := range map[string]struct {
		state  controlplaneworkload.State
		health slipwayworkload.Health
		want   bool
	}{
		"all is well":                      {read(-time.Minute), good, false},
		"a probe failed":                   {read(-time.Minute), failing, true},
		"it failed, and was read since":    {read(12 * time.Second), failing, false},
		"it failed, and does not respond":  {unread(12 * time.Second), failing, false},
		"it still fails":                   {unread(-time.Minute), failing, false},
		"the connection is given up":       {unread(-time.Minute), closed, false},
		"it answers again":                 {unread(-time.Second), good, true},
		"probes are answered, calls not":   {unread(time.Second), good, false},
		"it was never connected, nor read": {controlplaneworkload.State{}, slipwayworkload.Health{}, false},
	} {
		if got := tc.state.IsBehind(tc.health); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// An API server that cannot answer now, since its etcd has no quorum, is one that does not respond: more is found out in other ways.
func TestReadServerError(t *testing.T) { // KC-16
	w := &world{client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewTimeoutError("etcdserver: request timed out", 0)
		},
	}).Build()}
	got, err := controlplaneworkload.Reader{Clusters: w, Members: w, Certificates: w, Now: func() time.Time { return now }}.Read(t.Context(), controlplaneworkload.ReadRequest{})
	if err != nil || !strings.HasPrefix(got.Problem, "The API server responds with an error: ") || !strings.Contains(got.Problem, "etcdserver: request timed out") {
		t.Errorf("%q, %v", got.Problem, err)
	}
}

// What was read stays known while nothing can be read; after the grace period it does not count any more.
func TestThen(t *testing.T) { // KC-16
	const grace = time.Minute
	good := slipwayworkload.Health{Connected: true, LastProbeSuccess: now.Add(time.Hour)}
	read := controlplaneworkload.State{At: now, Initialized: true}
	first := read.Merge(controlplaneworkload.State{At: now.Add(time.Second), Problem: "a"})
	second := first.Merge(controlplaneworkload.State{At: now.Add(2 * time.Second), Problem: "b"})
	want := controlplaneworkload.State{At: now.Add(2 * time.Second), Problem: "b", FailingSince: now.Add(time.Second), Initialized: true}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if second.IsDown(now.Add(grace), good, grace) || !second.IsDown(now.Add(grace+time.Second), good, grace) {
		t.Error("where probes are answered, the grace period does not begin with the first reading that failed")
	}
	lost := slipwayworkload.Health{LastProbeSuccess: now.Add(-grace), ConsecutiveFailures: 1}
	if !second.IsDown(now, lost, grace) {
		t.Error("where probes fail, it does not begin with the last that was answered")
	}
	if again := second.Merge(controlplaneworkload.State{At: now.Add(3 * time.Second)}); again.IsDown(now.Add(time.Hour), lost, grace) || !again.FailingSince.IsZero() {
		t.Errorf("it was read: %+v", again)
	}
	if never := (controlplaneworkload.State{}).Merge(controlplaneworkload.State{At: now, Problem: "a"}); never.FailingSince != now || never.Initialized {
		t.Errorf("never read: %+v", never)
	}
}

func TestEtcd(t *testing.T) { // KC-13
	e := controlplaneworkload.Etcd{
		Members: []etcd.Member{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}},
		Statuses: map[string]controlplaneworkload.EtcdStatus{
			"a": {Status: etcd.Status{ClusterID: 7, Leader: 2}}, "b": {Status: etcd.Status{ClusterID: 7}},
			"c": {Status: etcd.Status{ClusterID: 8}}, "d": {Status: etcd.Status{ClusterID: 9, Leader: 1}, Problem: "it does not respond"},
		},
	}
	if _, ok := e.Member("c"); ok || e.Leader() != "b" || e.ClusterID() != 7 {
		t.Errorf("leader %s, cluster %d", e.Leader(), e.ClusterID())
	}
	if (controlplaneworkload.Etcd{}).Leader() != "" || (controlplaneworkload.Etcd{}).ClusterID() != 0 {
		t.Error("of nothing something is known")
	}
}
