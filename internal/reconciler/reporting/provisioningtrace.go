package reporting

import (
	"context"
	"crypto/sha256"
	"time"

	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// Names of the spans of [ProvisioningRecorder]: the whole provisioning and its consecutive stages. The benchmarks and
// users' queries depend on them.
const (
	spanProvisioning   = "machine: creation to ready"
	SpanBootstrapData  = "bootstrap data"
	SpanInfrastructure = "infrastructure"
	SpanNodeJoin       = "node join"
	SpanFirstReady     = "first ready"
)

// provisioningStage is one span. Its times have the resolution of the API, one second.
type provisioningStage struct {
	Name       string
	Start, End time.Time
}

// provisioningStages returns the spans of a Machine that is Ready, starting with [spanProvisioning]. It returns nil if
// the Machine is not Ready. [ProvisioningRecorder.Record] exports them.
func provisioningStages(m *clusterv1.Machine) []provisioningStage {
	set := condition.Set(m.Status.Conditions)
	if !set.IsTrue(clusterv1.MachineReadyCondition) {
		return nil
	}
	start := m.CreationTimestamp.Time
	stages := []provisioningStage{{Name: spanProvisioning, Start: start}}
	for _, part := range []struct{ name, until string }{
		{SpanBootstrapData, clusterv1.MachineBootstrapConfigReadyCondition}, {SpanInfrastructure, clusterv1.MachineInfrastructureReadyCondition},
		{SpanNodeJoin, clusterv1.MachineNodeReadyCondition}, {SpanFirstReady, clusterv1.MachineReadyCondition},
	} {
		end := start
		if c := set.Get(part.until); c != nil && c.LastTransitionTime.After(start) {
			end = c.LastTransitionTime.Time
		}
		stages = append(stages, provisioningStage{Name: part.name, Start: start, End: end})
		start = end
	}
	stages[0].End = start
	return stages
}

// traceID returns the trace ID for the Machine with this UID.
func traceID(machine types.UID) trace.TraceID {
	sum := sha256.Sum256([]byte("trace/" + machine))
	return trace.TraceID(sum[:16])
}

// spanID returns the span ID of a stage in the trace of the Machine.
func spanID(machine types.UID, stage string) trace.SpanID {
	sum := sha256.Sum256([]byte("span/" + string(machine) + "/" + stage))
	return trace.SpanID(sum[:8])
}

// withMachineTrace returns a context whose spans belong to the trace of a Machine: o itself or its owner. For other
// objects it returns ctx unchanged. [StartSpan] calls it.
func withMachineTrace(ctx context.Context, o metav1.Object) context.Context {
	machine := machineOf(o)
	if machine == "" {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, rootOf(machine))
}

func rootOf(machine types.UID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID(machine), SpanID: spanID(machine, spanProvisioning), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

func machineOf(o metav1.Object) types.UID {
	if _, ok := o.(*clusterv1.Machine); ok {
		return o.GetUID()
	}
	for _, ref := range o.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err == nil && gv.Group == clusterv1.GroupVersion.Group && ref.Kind == "Machine" {
			return ref.UID
		}
	}
	return ""
}
