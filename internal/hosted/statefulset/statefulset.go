package statefulset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// SizeFlag and ClassFlag are the names of the flags for [Volume]. Package providerset lists them (Flags).
const (
	SizeFlag  = "control-plane-volume-size"
	ClassFlag = "control-plane-storage-class"
)

// reasonNameTaken is the reason for a foreign object that has the name of an object of a control plane.
const reasonNameTaken = "NameTaken"

// Volume configures the volumes of control planes. The flags of `slipway manager` set it.
type Volume struct {
	Size resource.Quantity
	// Class is the storage class. Empty means the default class.
	Class string
}

// Settings configures the Pods of control planes. They come from flags and the environment of `slipway manager`.
type Settings struct {
	// Namespace of all objects, and the name of this program's Pod in it, whose image control planes use.
	Namespace, Pod string
	Service        Service
	Volume         Volume
	// Version of Kubernetes in the image.
	Version string
}

// controlPlanes are the control planes in a namespace. It implements backend.ControlPlanes and backend.Endpoints, whose
// methods the HostedControlPlane controller calls.
type controlPlanes struct {
	settings Settings
	// cached reads labelled objects from the cache. newest reads from the API server.
	cached, newest client.Reader
	writer         *kube.Writer
	watches.Subscribers

	mu sync.Mutex
	// ownSettings holds the properties of this program's Pod. It is nil before the first read.
	ownSettings *managerPodSettings
}

// New returns the backend for a connection that [Connect] created. The manager calls it at its start. It does not read
// anything yet.
func New(ctx context.Context, c Connection, s Settings) (backend.Backend, error) {
	planes := &controlPlanes{
		settings: s, cached: c.GetClient(), newest: c.GetAPIReader(), writer: kube.NewWriter(c.GetClient(), fieldManager),
	}
	if err := planes.watch(ctx, c.GetCache()); err != nil {
		return backend.Backend{}, err
	}
	return backend.Backend{ControlPlanes: planes, Endpoints: planes}, nil
}

func (c *controlPlanes) Capabilities(allowed policy.Configuration) backend.Capabilities {
	return backend.Capabilities{
		Kind: "hosted", Components: true, Addons: true, Versions: []string{c.settings.Version}, Maximum: allowed.Maxima.ControlPlanes, Setting: "maxima.controlPlanes",
		RunningReason: "Running", RestartEffect: "a running Pod is not restarted", InPods: true, OwnEndpoints: &backend.EndpointRange{SeparateEndpoint: true},
	}
}

func (c *controlPlanes) Status(ctx context.Context, name string) (backend.ControlPlane, error) {
	s, err := c.readObjects(ctx, name)
	return s.controlPlane(), err
}

// readObjects reads the objects of a control plane from the cache.
func (c *controlPlanes) readObjects(ctx context.Context, name string) (planeObjects, error) {
	s := planeObjects{namespace: c.settings.Namespace, name: objectName(name), serviceType: c.settings.Service.Type}
	set, pod, service, claim := &appsv1.StatefulSet{}, &corev1.Pod{}, &corev1.Service{}, &corev1.PersistentVolumeClaim{}
	for object, keep := range map[client.Object]func(){
		set: func() { s.set = set }, pod: func() { s.pod = pod }, service: func() { s.service = service }, claim: func() { s.claim = claim },
	} {
		key := client.ObjectKey{Namespace: s.namespace, Name: s.name}
		if object == client.Object(pod) {
			key.Name += "-0"
		}
		switch err := c.cached.Get(ctx, key, object, client.UnsafeDisableDeepCopy); {
		case err == nil && nameOf(object) == name:
			keep()
		case client.IgnoreNotFound(err) != nil:
			return s, fmt.Errorf("reading the objects of control plane %s: %w", name, err)
		}
	}
	if s.set == nil {
		return s, nil
	}
	own, err := c.readOwnSettings(ctx)
	if err != nil {
		return s, err
	}
	s.image = own.image
	if imageOf(s.set) == s.image {
		return s, nil
	}
	all := &appsv1.StatefulSetList{}
	if err := c.cached.List(ctx, all, client.InNamespace(s.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return s, fmt.Errorf("listing the StatefulSets of control planes: %w", err)
	}
	s.turn = nextToUpdate(all.Items, s.image) == s.name
	return s, nil
}

// readOwnSettings returns the properties of this program's Pod.
func (c *controlPlanes) readOwnSettings(ctx context.Context) (managerPodSettings, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ownSettings != nil {
		return *c.ownSettings, nil
	}
	pod := &corev1.Pod{}
	if err := c.newest.Get(ctx, client.ObjectKey{Namespace: c.settings.Namespace, Name: c.settings.Pod}, pod); err != nil {
		return managerPodSettings{}, fmt.Errorf("reading the Pod of the manager, whose image control planes get: %w", err)
	}
	mine := settingsOfManagerPod(pod, managerContainer)
	c.ownSettings = &mine
	return mine, nil
}

// read reads an object of a control plane from the API server. A foreign object with this name returns a
// transient fault, because no event is received when it is deleted.
func (c *controlPlanes) read(ctx context.Context, name string, object client.Object) (found bool, err error) {
	key := client.ObjectKey{Namespace: c.settings.Namespace, Name: objectName(name)}
	err = c.newest.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the objects of control plane %s: %w", name, err)
	case nameOf(object) != name:
		return false, fault.New(fault.Transient, reasonNameTaken, "%s %s has the name of an object of this control plane but does not belong to it; delete it, or set the label %s and the annotation %s of the control plane",
			c.writer.KindOf(object), key, label, nameAnnotation)
	}
	return true, nil
}

// apply creates or updates an object. The argument live is the object as it was read, or nil.
func (c *controlPlanes) apply(ctx context.Context, live, want client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fault.New(fault.Bug, "InvalidObject", "%T cannot be encoded", want).From(err)
	}
	delete(content, "status")
	body := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	if live == nil || live.GetUID() == "" {
		return asRefusalFault(body, c.writer.CreateApplied(ctx, body))
	}
	return asRefusalFault(body, c.writer.Apply(ctx, live, body))
}

// asRefusalFault converts a rejection that a cluster administrator must resolve, such as a quota, a policy or a
// missing class, to a fault with a message for users. It is retried.
func asRefusalFault(o client.Object, err error) error {
	if err == nil || fault.As(err) != nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return err
	}
	return fault.New(fault.Transient, "Refused", "The management cluster rejects %s %s/%s, retrying: %s", o.GetObjectKind().GroupVersionKind().Kind,
		o.GetNamespace(), o.GetName(), messageOf(err)).From(err)
}

// messageOf returns the message of the API server.
func messageOf(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// Start implements backend.ControlPlanes. It writes the claim first and the StatefulSet last, so that a retry
// after a crash creates the missing objects.
func (c *controlPlanes) Start(ctx context.Context, name string, cfg processconfig.Config, files map[string][]byte) error {
	at, err := cfg.Address()
	if err != nil {
		return err
	}
	mine, err := c.readOwnSettings(ctx)
	if err != nil {
		return err
	}
	seen, err := c.readObjects(ctx, name)
	if err != nil {
		return err
	}
	now := planeObjects{}
	set, claim := &appsv1.StatefulSet{}, &corev1.PersistentVolumeClaim{}
	if found, err := c.read(ctx, name, set); err != nil {
		return err
	} else if found {
		now.set = set
	}
	if found, err := c.read(ctx, name, claim); err != nil {
		return err
	} else if found {
		now.claim = claim
	}
	record, err := recordOf(now, seen.controlPlane(), cfg)
	if err != nil {
		return err
	}
	o := desiredPlane{name: name, namespace: c.settings.Namespace, config: cfg, files: files, record: record, port: int32(at.Port()), podSettings: mine}
	if err := c.ensureClaim(ctx, o, now.claim); err != nil {
		return err
	}
	for _, part := range []struct{ have, want client.Object }{
		{&corev1.Secret{}, o.secret()}, {&networkingv1.NetworkPolicy{}, o.networkPolicy()},
	} {
		if _, err := c.read(ctx, name, part.have); err != nil {
			return err
		}
		if err := c.apply(ctx, part.have, part.want); err != nil {
			return err
		}
	}
	if err := c.apply(ctx, set, o.statefulSet()); err != nil {
		return err
	}
	c.awaitSeen(ctx, name)
	return nil
}

// recordOf returns the data record for a control plane that is about to get a configuration.
func recordOf(now planeObjects, seen backend.ControlPlane, cfg processconfig.Config) (processconfig.Record, error) {
	record := now.record()
	if seen.Ready && seen.Version != "" {
		record.Version = seen.Version
	}
	data := record.Data(now.hasClaim())
	if err := data.KeysProblem(cfg.EncryptionKeys, cfg.EncryptionMark); err != nil {
		return record, err
	}
	if cfg.EncryptionKeys != "" {
		record.EncryptionKeys = cfg.EncryptionKeys
	}
	return record, data.Problem(cfg.Version)
}

// ensureClaim creates the claim if it does not exist, and otherwise stores the data record in it.
func (c *controlPlanes) ensureClaim(ctx context.Context, o desiredPlane, have *corev1.PersistentVolumeClaim) error {
	if have == nil {
		claim := o.claim(c.settings.Volume)
		return asRefusalFault(claim, c.writer.Create(ctx, claim))
	}
	if !have.DeletionTimestamp.IsZero() {
		return fault.New(fault.Unreachable, "ClaimDeleted", "PersistentVolumeClaim %s/%s is being deleted: the control plane starts after that", have.Namespace, have.Name)
	}
	return c.writer.PatchOwned(ctx, have, func(o2 client.Object) { kube.Annotate(o2, recordAnnotation, new(encode(o.record))) })
}

// Remove implements backend.ControlPlanes. It deletes the Service last, because its existence indicates that
// other objects may remain.
func (c *controlPlanes) Remove(ctx context.Context, name string) error {
	for _, object := range []client.Object{
		&appsv1.StatefulSet{}, &networkingv1.NetworkPolicy{}, &corev1.PersistentVolumeClaim{}, &corev1.Secret{}, &corev1.Service{},
	} {
		found, err := c.read(ctx, name, object)
		if f := fault.As(err); f != nil && f.Reason == reasonNameTaken { // a foreign object
			continue
		}
		if err != nil {
			return err
		}
		if found {
			if err := c.writer.DeleteAnyway(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *controlPlanes) Count(ctx context.Context, namespace string) (own, all int, err error) {
	list := &corev1.ServiceList{}
	if err := c.cached.List(ctx, list, client.InNamespace(c.settings.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, 0, fmt.Errorf("listing the Services of control planes: %w", err)
	}
	for i := range list.Items {
		name := nameOf(&list.Items[i])
		if name == "" {
			continue
		}
		all++
		if strings.HasPrefix(name, namespace+".") {
			own++
		}
	}
	return own, all, nil
}
