package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// The actions of the controller. Each may be repeated. decide plans them, and act runs them.
type (
	// join sets the cluster label and the owner reference of the health check.
	join struct{ Cluster string }
	// mark sets the conditions of a Machine: its health, and whether it has to be remediated.
	mark struct {
		Machine string
		Wants   machineConditions
	}
	// requestRemediation creates the request for external remediation of a Machine and sets the Machine's conditions.
	requestRemediation struct {
		Machine string
		Wants   machineConditions
	}
	// withdraw deletes the request for external remediation of a Machine.
	withdraw struct{ Machine, Kind string }
)

func (a join) String() string { return "join Cluster " + a.Cluster }

func (a mark) String() string {
	switch w := a.Wants; {
	case w.Owner.Status != "":
		return fmt.Sprintf("mark Machine %s unhealthy and to be remediated by its owner: %s", a.Machine, w.Health.Message)
	case w.Health.Status == metav1.ConditionFalse:
		return fmt.Sprintf("mark Machine %s unhealthy: %s", a.Machine, w.Health.Message)
	case w.Health.Status == metav1.ConditionTrue:
		return fmt.Sprintf("mark Machine %s healthy: no check fails", a.Machine)
	}
	return fmt.Sprintf("give up conditions of Machine %s that are not this health check's, or not the case, any more", a.Machine)
}

func (a requestRemediation) String() string {
	return fmt.Sprintf("request external remediation of Machine %s: %s", a.Machine, a.Wants.Health.Message)
}

func (a withdraw) String() string {
	return fmt.Sprintf("delete %s %s: the Machine is healthy again", a.Kind, a.Machine)
}

// act runs one action. Package reconciler calls it for each action that decide planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case join:
		return c.writer.Patch(ctx, s.Check, func(o client.Object) { ownership.AddToCluster(o, s.Cluster) })
	case mark:
		return c.mark(ctx, s, a.Machine, a.Wants)
	case requestRemediation:
		return c.request(ctx, s, a)
	case withdraw:
		return c.writer.Delete(ctx, targetOf(s, a.Machine).Request.Unstructured)
	}
	return reconciler.UnknownAction("machinehealthcheck", action)
}

// mark applies the conditions. A Machine that no longer exists is ignored.
func (c *controller) mark(ctx context.Context, s snapshot, name string, wants machineConditions) error {
	m := targetOf(s, name).Machine
	var table condition.Table[machineConditions]
	for _, conditionType := range conditionTypes() {
		table = append(table, condition.Row[machineConditions]{
			Type: conditionType, Compute: func(w machineConditions) condition.Result { return w.of(conditionType) },
		})
	}
	conditions := table.Evaluate(wants, reconciler.EvaluateOptionsFor(m, s.Now))
	if err := c.writer.TransferStatusOwnership(ctx, c.live, m, kube.OnlyConditions(targetOf(s, name).Claims...)); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := c.writer.ApplyStatus(ctx, m, map[string]any{"conditions": conditions}); err != nil {
		return client.IgnoreNotFound(err)
	}
	if wants.Health.Reason == clusterv1.MachineHealthCheckNodeStartupTimeoutReason && (wants.Owner.Status != "" || wants.External.Status != "") {
		c.setbacks.record(m, s.Now)
	}
	was := condition.Set(m.Status.Conditions).IsFalse(clusterv1.MachineHealthCheckSucceededCondition)
	if c.events != nil && wants.Health.Status == metav1.ConditionFalse && !was {
		c.events.Eventf(m, s.Check, corev1.EventTypeWarning, "MachineMarkedUnhealthy", "HealthCheck", "%s", wants.Health.Message)
	}
	return nil
}

// request creates the remediation request, then sets the conditions of the Machine with the result.
func (c *controller) request(ctx context.Context, s snapshot, a requestRemediation) error {
	m := targetOf(s, a.Machine).Machine
	err := c.writer.Create(ctx, newRequest(s, m))
	wants := a.Wants
	if err != nil {
		wants.External = condition.False(clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason, fault.UserMessage(err))
	}
	return errors.Join(err, c.mark(ctx, s, a.Machine, wants))
}

// newRequest returns the remediation request for a Machine, from the template that the health check references. By
// Cluster API's contract for external remediation it has the Machine's name and is owned by it.
func newRequest(s snapshot, m *clusterv1.Machine) *unstructured.Unstructured {
	t := s.Template
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(t.GetAPIVersion())
	u.SetKind(t.RequestKind)
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	labels := map[string]string{}
	maps.Copy(labels, t.RequestLabels.Or(nil))
	labels[clusterv1.ClusterNameLabel] = m.Spec.ClusterName
	u.SetLabels(labels)
	annotations := map[string]string{}
	maps.Copy(annotations, t.RequestAnnotations.Or(nil))
	annotations[clusterv1.TemplateClonedFromNameAnnotation] = t.GetName()
	annotations[clusterv1.TemplateClonedFromGroupKindAnnotation] = t.GroupVersionKind().GroupKind().String()
	u.SetAnnotations(annotations)
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: m.Name, UID: m.UID,
	}})
	if spec, ok := t.RequestSpec.Get(); ok {
		u.Object["spec"] = (&unstructured.Unstructured{Object: spec}).DeepCopy().Object
	}
	return u
}

func targetOf(s snapshot, name string) target {
	for _, t := range s.Targets {
		if t.Machine.Name == name {
			return t
		}
	}
	return target{}
}
