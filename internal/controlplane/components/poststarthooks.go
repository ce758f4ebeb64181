package components

import (
	"context"
	"errors"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
)

// hookPause is the delay before a failed hook is retried.
const hookPause = time.Second

// hook is a post-start hook of kube-apiserver.
type hook struct {
	name string
	run  genericapiserver.PostStartHookFunc
}

// extractTimedHooks removes from the configuration of an API server that is being built the post-start hooks that give
// up after half a minute or a few minutes and then end the process: the default roles, the priority classes, and the
// configuration of priority and fairness. On a slow host, a restart would take just as long. The imported APIs must
// exist in several Kubernetes versions (doc.go). build (apiserver.go) calls it.
func extractTimedHooks(config *app.Config) ([]hook, error) {
	own := config.KubeAPIs.ControlPlane
	providers := []interface {
		genericapiserver.PostStartHookProvider
		GroupName() string
	}{
		rbacrest.RESTStorageProvider{}, schedulingrest.RESTStorageProvider{},
		flowcontrolrest.RESTStorageProvider{InformerFactory: own.Extra.VersionedInformers},
	}
	var out []hook
	for _, p := range providers {
		if !own.Extra.APIResourceConfigSource.AnyResourceForGroupEnabled(p.GroupName()) {
			continue // its storage is disabled, and therefore its hook is, too
		}
		name, run, err := p.PostStartHook()
		if err != nil {
			return nil, err
		}
		if own.Generic.DisabledPostStartHooks.Has(name) {
			continue
		}
		own.Generic.DisabledPostStartHooks.Insert(name)
		out = append(out, hook{name, run})
	}
	return out, nil
}

// addRetriedHooks adds the hooks to the server, so that each is retried until it succeeds. The server was built
// with the configuration. build (apiserver.go) calls it.
func addRetriedHooks(hooks []hook, config *app.Config, server *genericapiserver.GenericAPIServer) error {
	for _, h := range hooks {
		config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Delete(h.name) // the server shares this set
		if err := server.AddPostStartHook(h.name, h.withRetries(hookPause)); err != nil {
			return err
		}
	}
	return nil
}

// withRetries returns the hook with retries until it succeeds or the server stops.
func (h hook) withRetries(pause time.Duration) genericapiserver.PostStartHookFunc {
	return func(ctx genericapiserver.PostStartHookContext) error {
		for {
			err := h.run(ctx)
			if err == nil || ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return nil
			}
			klog.InfoS("post-start hook of kube-apiserver failed, retrying", "hook", h.name, "reason", err.Error())
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil
			}
		}
	}
}
