package reporting

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

// journeyMachine has the conditions, True, since so many seconds after its creation.
func journeyMachine(since map[string]int) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", CreationTimestamp: metav1.NewTime(t0)}}
	for t, s := range since {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: t, Status: "True", LastTransitionTime: metav1.NewTime(at(s))})
	}
	return m
}

func whole() map[string]int {
	return map[string]int{"BootstrapConfigReady": 3, "InfrastructureReady": 10, "NodeReady": 25, "Ready": 26}
}

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		since  map[string]int
		want   []provisioningStage
	}{
		"whole": {"one stage after the other", whole(), []provisioningStage{
			{Name: spanProvisioning, Start: t0, End: at(26)}, {Name: SpanBootstrapData, Start: t0, End: at(3)},
			{Name: SpanInfrastructure, Start: at(3), End: at(10)}, {Name: SpanNodeJoin, Start: at(10), End: at(25)},
			{Name: SpanFirstReady, Start: at(25), End: at(26)},
		}},
		"not ready": {"it is on its way", map[string]int{"BootstrapConfigReady": 3}, nil},
		"out of order": {"a stage that was over before the one before it took no time", map[string]int{"BootstrapConfigReady": 12, "InfrastructureReady": 10, "Ready": 20},
			[]provisioningStage{
				{Name: spanProvisioning, Start: t0, End: at(20)}, {Name: SpanBootstrapData, Start: t0, End: at(12)},
				{Name: SpanInfrastructure, Start: at(12), End: at(12)}, {Name: SpanNodeJoin, Start: at(12), End: at(12)},
				{Name: SpanFirstReady, Start: at(12), End: at(20)},
			}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, provisioningStages(journeyMachine(tc.since))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func provider() (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	return sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(TraceIDGenerator{})), spans
}

// TestRecord: one trace, the stages below the whole, and a reconcile of what belongs to the Machine in the same trace.
func TestRecord(t *testing.T) {
	p, spans := provider()
	r := &ProvisioningRecorder{Tracer: p.Tracer("test")}
	r.Record(context.Background(), journeyMachine(whole()))
	config := &bootstrapv1.KubeadmConfig{}
	config.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m", UID: "u"}}
	_, pass := p.Tracer("test").Start(withMachineTrace(context.Background(), config), "pass")
	pass.End()
	list := spans.GetSpans()
	if len(list) != 6 {
		t.Fatalf("%d spans", len(list))
	}
	root := list[0]
	if root.Name != spanProvisioning || root.Parent.IsValid() || !root.StartTime.Equal(t0) || !root.EndTime.Equal(at(26)) {
		t.Errorf("the whole: %+v", root)
	}
	for _, s := range list[1:] {
		if s.Parent.SpanID() != root.SpanContext.SpanID() || s.SpanContext.TraceID() != root.SpanContext.TraceID() {
			t.Errorf("%s is not below the whole", s.Name)
		}
	}
	if list[3].Name != SpanNodeJoin || !list[3].StartTime.Equal(at(10)) || !list[3].EndTime.Equal(at(25)) {
		t.Errorf("a stage: %+v", list[3])
	}
}

// TestRecordTwice: after a restart the same is told again, not something else.
func TestRecordTwice(t *testing.T) {
	p, spans := provider()
	for range 2 {
		(&ProvisioningRecorder{Tracer: p.Tracer("test")}).Record(context.Background(), journeyMachine(whole()))
	}
	list := spans.GetSpans()
	for i := range len(list) / 2 {
		if list[i].SpanContext.SpanID() != list[i+5].SpanContext.SpanID() || list[i].SpanContext.TraceID() != list[i+5].SpanContext.TraceID() {
			t.Errorf("%s has another ID the second time", list[i].Name)
		}
	}
}

// TestFollow: the trace ends with the first Ready, once; a Machine that is Ready for long is none of this process's.
// followed is a cache that says when a handler of its informer is there.
type followed struct {
	*informertest.FakeInformers
	added chan struct{}
}

func (f followed) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := f.FakeInformers.GetInformer(ctx, o, opts...)
	return following{informer, f.added}, err
}

type following struct {
	cache.Informer
	added chan struct{}
}

func (f following) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	defer close(f.added)
	return f.Informer.AddEventHandler(handler)
}

func TestFollow(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	informers := &informertest.FakeInformers{Scheme: scheme}
	machines, err := informers.FakeInformerFor(t.Context(), &clusterv1.Machine{})
	if err != nil {
		t.Fatal(err)
	}
	p, spans := provider()
	added := make(chan struct{})
	r := &ProvisioningRecorder{Cache: followed{informers, added}, Tracer: p.Tracer("test"), Now: func() time.Time { return at(3600) }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	young, ready := journeyMachine(map[string]int{"BootstrapConfigReady": 3}), journeyMachine(whole())
	<-added
	machines.Update(young, ready)
	machines.Update(ready, young)
	machines.Update(young, ready)
	old := journeyMachine(whole())
	old.UID = "old"
	machines.Add(old)
	if n := len(spans.GetSpans()); n != 5 {
		t.Errorf("%d spans, want those of one Machine", n)
	}
	late := journeyMachine(map[string]int{"Ready": 3500})
	late.UID = "late"
	machines.Add(late)
	if n := len(spans.GetSpans()); n != 10 {
		t.Errorf("%d spans, want those of a Machine that became Ready while no manager ran too", n)
	}
	machines.Delete(ready)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWithin(t *testing.T) {
	if s := trace.SpanContextFromContext(withMachineTrace(context.Background(), &clusterv1.Cluster{})); s.IsValid() {
		t.Error("a Cluster is not part of a Machine's trace")
	}
	if s := trace.SpanContextFromContext(withMachineTrace(context.Background(), journeyMachine(nil))); s.TraceID() != traceID("u") {
		t.Error("a Machine is part of its own trace")
	}
}
