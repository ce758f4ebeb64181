package extensiontools

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
)

// waitForDiscovery waits until the management cluster has discovered the handlers of the extension that [RunSession]
// has registered, and returns the ExtensionConfig with them. It calls tell with the reason whenever the reason for a
// failed discovery changes. It ends with ctx.
func waitForDiscovery(ctx context.Context, c client.WithWatch, of *runtimev1.ExtensionConfig, tell func(reason string)) (*runtimev1.ExtensionConfig, error) {
	last := ""
	found, err := awaitConfig(ctx, c, of, func(config *runtimev1.ExtensionConfig) bool {
		done, reason := discovered(config, of.Generation)
		if !done && reason != "" && reason != last {
			tell(reason)
			last = reason
		}
		return done
	})
	if err != nil {
		return nil, timeoutError(ctx, err, last)
	}
	return found, nil
}

// RefreshDiscovery requests another discovery of an extension, waits for it, and returns the ExtensionConfig with its
// handlers. `slipway extension refresh` and [RunSession] after a restart call it. request is an identifier that is
// unique for each call. A failed discovery is an Unreachable fault with the reason.
func RefreshDiscovery(ctx context.Context, c client.WithWatch, name, request string) (*runtimev1.ExtensionConfig, error) {
	config := &runtimev1.ExtensionConfig{}
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, config); {
	case apierrors.IsNotFound(err):
		return nil, unknown(ctx, c, name)
	case err != nil:
		return nil, err
	}
	if _, paused := config.Annotations[clusterv1.PausedAnnotation]; paused {
		return nil, fault.New(fault.Invalid, "Paused", "extension %q is paused: it is not discovered until its annotation %s is removed", name, clusterv1.PausedAnnotation)
	}
	before := config.DeepCopy()
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, hook.RefreshAnnotation, request)
	if err := c.Patch(ctx, config, client.MergeFrom(before), client.FieldOwner("slipway-extension-refresh")); err != nil {
		return nil, err
	}
	last := ""
	found, err := awaitConfig(ctx, c, config, func(now *runtimev1.ExtensionConfig) bool {
		_, last = discovered(now, now.Generation)
		return now.Annotations[hook.RefreshAnnotation] != request
	})
	if err != nil {
		return nil, timeoutError(ctx, err, last)
	}
	if done, reason := discovered(found, found.Generation); !done {
		return nil, notDiscovered(reason)
	}
	return found, nil
}

// awaitConfig watches an ExtensionConfig until wanted returns true, or returns the error of ctx. If the object was
// replaced by another one, it waits until ctx ends; if it was deleted, the fault is Gone.
func awaitConfig(ctx context.Context, c client.WithWatch, of *runtimev1.ExtensionConfig, wanted func(*runtimev1.ExtensionConfig) bool) (*runtimev1.ExtensionConfig, error) {
	for {
		found, err := watch(ctx, c, of, wanted)
		if found != nil {
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
	}
}

// watch watches the object until wanted returns true or the watch ends, which API servers do after some minutes.
func watch(ctx context.Context, c client.WithWatch, of *runtimev1.ExtensionConfig, wanted func(*runtimev1.ExtensionConfig) bool) (*runtimev1.ExtensionConfig, error) {
	w, err := c.Watch(ctx, &runtimev1.ExtensionConfigList{}, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", of.Name),
	})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	now := &runtimev1.ExtensionConfig{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(of), now); err != nil {
		return nil, err
	}
	for {
		if now.UID == of.UID && wanted(now) {
			return now, nil
		}
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return nil, nil
			}
			if config, ok := e.Object.(*runtimev1.ExtensionConfig); ok {
				now = config
			}
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// discovered reports whether a generation has been discovered, or the reason why not.
func discovered(config *runtimev1.ExtensionConfig, generation int64) (done bool, reason string) {
	c := meta.FindStatusCondition(config.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition)
	if c == nil || c.ObservedGeneration < generation {
		return false, ""
	}
	return c.Status == metav1.ConditionTrue, c.Message
}

// timeoutError returns the error for a wait that timed out.
func timeoutError(ctx context.Context, err error, reason string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return notDiscovered(reason).From(context.Cause(ctx))
}

func notDiscovered(reason string) *fault.Fault {
	if reason == "" {
		reason = "it says nothing about it; is the feature gate RuntimeSDK on?"
	}
	return fault.New(fault.Unreachable, "NotDiscovered", "the management cluster has not discovered the extension: %s", reason)
}
