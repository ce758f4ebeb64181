// Package register keeps the ExtensionConfigs of extensions that a developer runs.
//
// Does: lists extensions, registers one that runs on this machine, waits until the management cluster has discovered it,
// and removes the registration.
//
// Owns: ExtensionConfigs with the annotation [RunAnnotation]; no other is ever changed, though any may be deleted by name.
//
// Never: calls an extension; the management cluster does.
//
// Read first: [Register].
package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// RunAnnotation marks what `slipway extension run` registered.
const RunAnnotation = "extension.slipway.dev/run"

// manager is the name under which these objects are written.
const manager = client.FieldOwner("slipway-extension-run")

// Local is an extension of this machine.
type Local struct {
	Name string
	// URL at which the management cluster reaches it, with the PEM of the authority of its certificate.
	URL string
	CA  []byte
	// Namespace that it is called for; empty: all.
	Namespace string
	// Settings that are added to every request.
	Settings map[string]string
}

// Register creates the ExtensionConfig of a local extension, or takes over one that an earlier run left behind.
func Register(ctx context.Context, c client.Client, l Local) (*runtimev1.ExtensionConfig, error) {
	config := &runtimev1.ExtensionConfig{}
	err := c.Get(ctx, client.ObjectKey{Name: l.Name}, config)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	exists := err == nil
	if _, ours := config.Annotations[RunAnnotation]; exists && !ours {
		return nil, fault.New(fault.Invalid, "NameTaken",
			"the management cluster has an extension %q already, which does not come from \"slipway extension run\"; choose another name with --name", l.Name)
	}
	config.Name = l.Name
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, RunAnnotation, "true")
	config.Spec = runtimev1.ExtensionConfigSpec{
		ClientConfig: runtimev1.ClientConfig{URL: l.URL, CABundle: l.CA}, Settings: l.Settings,
	}
	if l.Namespace != "" {
		config.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.Namespace}}
	}
	if exists {
		return config, c.Update(ctx, config, manager)
	}
	return config, c.Create(ctx, config, manager)
}

// Await waits until the management cluster has asked the extension for its handlers, and returns the ExtensionConfig
// with them. tell is called with the reason whenever that changes while it does not succeed. It ends with ctx.
func Await(ctx context.Context, c client.WithWatch, of *runtimev1.ExtensionConfig, tell func(reason string)) (*runtimev1.ExtensionConfig, error) {
	a := &awaited{of: of, tell: tell}
	for {
		found, err := a.watch(ctx, c)
		if found != nil {
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, a.late(ctx, ctx.Err())
		}
		if err != nil {
			return nil, err
		}
	}
}

// awaited is an ExtensionConfig that is to be discovered.
type awaited struct {
	of   *runtimev1.ExtensionConfig
	tell func(reason string)
	last string
}

// watch follows the object until it is discovered or the watch ends, as watches do after some minutes.
func (a *awaited) watch(ctx context.Context, c client.WithWatch) (*runtimev1.ExtensionConfig, error) {
	w, err := c.Watch(ctx, &runtimev1.ExtensionConfigList{}, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", a.of.Name),
	})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	now := &runtimev1.ExtensionConfig{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(a.of), now); err != nil {
		return nil, err
	}
	if a.done(now) {
		return now, nil
	}
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return nil, nil
			}
			if config, ok := e.Object.(*runtimev1.ExtensionConfig); ok && a.done(config) {
				return config, nil
			}
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (a *awaited) done(config *runtimev1.ExtensionConfig) bool {
	if config.UID != a.of.UID {
		return false
	}
	done, reason := discovered(config, a.of.Generation)
	if !done && reason != "" && reason != a.last {
		a.tell(reason)
		a.last = reason
	}
	return done
}

// discovered reports whether a generation has been discovered, and if not, why.
func discovered(config *runtimev1.ExtensionConfig, generation int64) (done bool, reason string) {
	c := meta.FindStatusCondition(config.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition)
	if c == nil || c.ObservedGeneration < generation {
		return false, ""
	}
	return c.Status == metav1.ConditionTrue, c.Message
}

// late says why waiting ended.
func (a *awaited) late(ctx context.Context, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	reason := a.last
	if reason == "" {
		reason = "it says nothing about it; is the feature gate RuntimeSDK on?"
	}
	return fault.New(fault.Unreachable, "NotDiscovered", "the management cluster has not discovered the extension: %s", reason).From(context.Cause(ctx))
}

// Delete removes the registration of a name. A name that does not exist is a fault of kind Gone that lists those that do.
func Delete(ctx context.Context, c client.Client, name string) error {
	err := c.Delete(ctx, &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if apierrors.IsNotFound(err) {
		return unknown(ctx, c, name)
	}
	return err
}

// Withdraw removes what Register registered, unless another client has replaced it.
func Withdraw(ctx context.Context, c client.Client, config *runtimev1.ExtensionConfig) error {
	err := c.Delete(ctx, config, client.Preconditions{UID: &config.UID})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

func unknown(ctx context.Context, c client.Client, name string) error {
	all, err := List(ctx, c)
	if err != nil {
		return err
	}
	var names []string
	for _, config := range all {
		names = append(names, config.Name)
	}
	there := "there are none; \"slipway extension run\" registers one"
	if len(names) > 0 {
		there = "there are: " + strings.Join(names, ", ")
	}
	return fault.New(fault.Gone, "ExtensionNotFound", "there is no extension %q; %s", name, there)
}

// List returns all extensions, sorted by name.
func List(ctx context.Context, c client.Client) ([]runtimev1.ExtensionConfig, error) {
	var list runtimev1.ExtensionConfigList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the extensions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b runtimev1.ExtensionConfig) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}
