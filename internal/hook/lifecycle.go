package hook

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Delays of calls, all our choice.
const (
	// reuse is how long a response that does not block is cached for the same call.
	reuse = 10 * time.Minute
	// planReuse is how long an upgrade plan is cached. It is short because the available versions may change while the
	// Cluster does not.
	planReuse = time.Minute
	// retryDelay is the delay before a call is retried that could not be made at all.
	retryDelay = 500 * time.Millisecond
)

// LifecycleCaller calls lifecycle hooks for the topology controller. It builds the request from a [lifecycle.HookCall]
// and the Cluster, calls all handlers of the hook, and returns their combined result. Package lifecycle decides which
// hook is called and how the result is used. Responses are cached as long as neither the HookCall nor the Cluster
// changes, so that the hook is not called again if the write that follows the response fails.
type LifecycleCaller struct{ Client Client }

// Call calls a hook for a Cluster. A failing extension is reported in the result; the only error returned is the
// context's.
func (c LifecycleCaller) Call(ctx context.Context, cluster *clusterv1.Cluster, q lifecycle.HookCall) (lifecycle.HookResult, error) {
	result, err := c.callHandlers(ctx, cluster, q)
	switch f := fault.As(err); {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return lifecycle.HookResult{}, fmt.Errorf("calling hook %s: %w", q.Hook, err)
	case f != nil && (f.Reason == ReasonBusy || f.Reason == ReasonNotReady):
		return lifecycle.HookResult{RetryAfter: cmp.Or(f.RetryAfter, retryDelay)}, nil
	}
	return lifecycle.HookResult{Problem: err}, nil
}

func (c LifecycleCaller) callHandlers(ctx context.Context, cluster *clusterv1.Cluster, q lifecycle.HookCall) (lifecycle.HookResult, error) {
	if q.Hook == lifecycle.GenerateUpgradePlan {
		return c.plan(ctx, cluster, q)
	}
	request, response := newLifecycleRequest(ClusterForRequest(cluster), q)
	if request == nil {
		return lifecycle.HookResult{}, fault.New(fault.Bug, "UnknownHook", "there is no lifecycle hook %s", q.Hook)
	}
	called, err := c.Client.CallAll(ctx, cluster, Invocation{Request: request, Response: response, CacheKey: lifecycleCacheKey(cluster, q), CacheTTL: reuse})
	if err != nil {
		return lifecycle.HookResult{}, err
	}
	result := lifecycle.HookResult{Handlers: called.Handlers}
	for _, b := range called.Blocking {
		result.Blocking = append(result.Blocking, lifecycle.Blocker{Handler: b.Handler, Message: b.Message, Since: b.Since, RetryAfter: b.RetryAfter})
	}
	return result, nil
}

func (c LifecycleCaller) plan(ctx context.Context, cluster *clusterv1.Cluster, q lifecycle.HookCall) (lifecycle.HookResult, error) {
	response := &hooksv1.GenerateUpgradePlanResponse{}
	err := c.Client.Call(ctx, cluster, q.Handler, Invocation{
		Request: &hooksv1.GenerateUpgradePlanRequest{
			Cluster: ClusterForRequest(cluster), FromControlPlaneKubernetesVersion: q.From, FromWorkersKubernetesVersion: q.FromWorkers,
			ToKubernetesVersion: q.To,
		},
		Response: response, CacheKey: lifecycleCacheKey(cluster, q), CacheTTL: planReuse,
	})
	if err != nil {
		return lifecycle.HookResult{}, err
	}
	result := lifecycle.HookResult{Handlers: []string{q.Handler}}
	for _, step := range response.ControlPlaneUpgrades {
		result.Plan.ControlPlane = append(result.Plan.ControlPlane, step.Version)
	}
	for _, step := range response.WorkersUpgrades {
		result.Plan.Workers = append(result.Plan.Workers, step.Version)
	}
	return result, nil
}

// lifecycleCacheKey returns the cache key of a response. A new field of a HookCall must be added to it.
func lifecycleCacheKey(cluster *clusterv1.Cluster, q lifecycle.HookCall) string {
	return digest(cluster, string(q.Hook), q.From, q.FromWorkers, q.To, fmt.Sprint(q.Rest))
}

// newLifecycleRequest returns the request of a hook and an empty response, or nil if there is no such hook. A new hook
// of package lifecycle needs a case here, unless it has its own function like plan.
func newLifecycleRequest(cluster clusterv1.Cluster, q lifecycle.HookCall) (runtime.Object, hooks.Response) {
	controlPlane, workers := steps(q.Rest.ControlPlane), steps(q.Rest.Workers)
	switch q.Hook {
	case lifecycle.BeforeClusterCreate:
		return &hooksv1.BeforeClusterCreateRequest{Cluster: cluster}, &hooksv1.BeforeClusterCreateResponse{}
	case lifecycle.AfterControlPlaneInitialized:
		return &hooksv1.AfterControlPlaneInitializedRequest{Cluster: cluster}, &hooksv1.AfterControlPlaneInitializedResponse{}
	case lifecycle.BeforeClusterUpgrade:
		return &hooksv1.BeforeClusterUpgradeRequest{
			Cluster: cluster, FromKubernetesVersion: q.From, ToKubernetesVersion: q.To, ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &hooksv1.BeforeClusterUpgradeResponse{}
	case lifecycle.BeforeControlPlaneUpgrade:
		return &hooksv1.BeforeControlPlaneUpgradeRequest{
			Cluster: cluster, FromKubernetesVersion: q.From, ToKubernetesVersion: q.To, ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &hooksv1.BeforeControlPlaneUpgradeResponse{}
	case lifecycle.AfterControlPlaneUpgrade:
		return &hooksv1.AfterControlPlaneUpgradeRequest{
			Cluster: cluster, KubernetesVersion: q.To, ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &hooksv1.AfterControlPlaneUpgradeResponse{}
	case lifecycle.BeforeWorkersUpgrade:
		return &hooksv1.BeforeWorkersUpgradeRequest{
			Cluster: cluster, FromKubernetesVersion: q.From, ToKubernetesVersion: q.To, ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &hooksv1.BeforeWorkersUpgradeResponse{}
	case lifecycle.AfterWorkersUpgrade:
		return &hooksv1.AfterWorkersUpgradeRequest{
			Cluster: cluster, KubernetesVersion: q.To, ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &hooksv1.AfterWorkersUpgradeResponse{}
	case lifecycle.AfterClusterUpgrade:
		return &hooksv1.AfterClusterUpgradeRequest{Cluster: cluster, KubernetesVersion: q.To}, &hooksv1.AfterClusterUpgradeResponse{}
	case lifecycle.BeforeClusterDelete:
		return &hooksv1.BeforeClusterDeleteRequest{Cluster: cluster}, &hooksv1.BeforeClusterDeleteResponse{}
	}
	return nil, nil
}

func steps(versions []string) []hooksv1.UpgradeStepInfo {
	var out []hooksv1.UpgradeStepInfo
	for _, v := range versions {
		out = append(out, hooksv1.UpgradeStepInfo{Version: v})
	}
	return out
}
