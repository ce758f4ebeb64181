package topology

import (
	"context"
	"maps"
	"time"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/topology/patch"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// answerKept is how long the response of an extension to the same request is cached. The key of the cache identifies
// the whole request.
const answerKept = 24 * time.Hour

// callExtension calls an extension to generate patches or to validate the topology, when decide requests askExtension.
// It records a failed call in the snapshot, so that the other extensions are called as well. The Read function of the
// controller (act.go) calls it.
func (c *controller) callExtension(ctx context.Context, s snapshot, q patch.ExtensionRequest) (snapshot, error) {
	response, err := c.call(ctx, s, q)
	if err != nil {
		s.Failed = maps.Clone(s.Failed)
		if s.Failed == nil {
			s.Failed = map[string]error{}
		}
		s.Failed[q.Key] = err
		return s, nil
	}
	s.Answers = maps.Clone(s.Answers)
	if s.Answers == nil {
		s.Answers = patch.Responses{}
	}
	s.Answers[q.Key] = response
	return s, nil
}

func (c *controller) call(ctx context.Context, s snapshot, q patch.ExtensionRequest) (runtimehooksv1.ResponseObject, error) {
	if c.extensions == nil {
		return nil, fault.New(fault.Invalid, "RuntimeSDKDisabled", "the feature gate RuntimeSDK is off: turn it on, or remove the patch from the ClusterClass")
	}
	exchange := hook.Invocation{
		Request: q.Request, CacheKey: q.Key, CacheTTL: answerKept, Accept: func(answer hooks.Response) bool { return q.Accepts(answer) },
	}
	if _, validates := q.Request.(*runtimehooksv1.ValidateTopologyRequest); validates {
		response := &runtimehooksv1.ValidateTopologyResponse{}
		exchange.Response = response
		return response, c.extensions.Call(ctx, s.Cluster, q.Extension, exchange)
	}
	response := &runtimehooksv1.GeneratePatchesResponse{}
	exchange.Response = response
	return response, c.extensions.Call(ctx, s.Cluster, q.Extension, exchange)
}
