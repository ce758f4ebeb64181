package crds

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
)

const (
	// page is the number of objects in one list request.
	page = 500
	// firstRetry and lastRetry limit the backoff between attempts.
	firstRetry, lastRetry = 500 * time.Millisecond, time.Minute
	// owner is the field manager. It owns no fields.
	owner = kube.ManagerPrefix + "migration"
)

// Migrator migrates the objects of CRDs to their storage version ([NewMigrator]). For Slipway's CRDs, it is a Runnable
// that runs on the leader when the manager has started.
type Migrator struct {
	// reader and client access CRDs.
	reader client.Reader
	client client.Client
	access map[string]Access
	skip   []Phase
}

// Access reads and writes the objects of a CRD.
type Access struct {
	Reader client.Reader
	Client client.Client
}

// NewMigrator returns a migrator for the objects of the named CRDs. The arguments reader and c access CRDs. No reader
// may read from a cache. The manager creates one, and package clusterctl/install another one for the CRDs of other
// providers.
func NewMigrator(reader client.Reader, c client.Client, objects map[string]Access, skip []Phase) *Migrator {
	return &Migrator{reader: reader, client: c, access: objects, skip: skip}
}

// Start implements manager.Runnable. It retries until the migration succeeds or ctx ends, and nothing waits
// for it.
func (m *Migrator) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("migration")
	retry := wait.Backoff{Duration: firstRetry, Factor: 2, Cap: lastRetry, Steps: 1 << 30}
	for {
		err := m.Migrate(ctx, log)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		delay := retry.Step()
		log.Info("migrating stored objects failed, retrying", "after", delay.String(), "error", err.Error())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// Migrate makes one attempt for every CRD that has changed since its last migration. The commands that install and
// upgrade providers also call it.
func (m *Migrator) Migrate(ctx context.Context, log logr.Logger) error {
	if slices.Contains(m.skip, allPhases) {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := m.reader.List(ctx, list); err != nil {
		return fmt.Errorf("listing the CRDs: %w", err)
	}
	for _, item := range list.Items {
		if _, ok := m.access[item.Name]; !ok || observed(item.Generation, item.Annotations) {
			continue
		}
		if err := m.migrate(ctx, log, item.Name); err != nil {
			return fmt.Errorf("migrating the objects of %s: %w", item.Name, err)
		}
	}
	return nil
}

func (m *Migrator) migrate(ctx context.Context, log logr.Logger, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := m.reader.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return err
	}
	plan := decide(crd, m.skip)
	if plan.Done {
		return nil
	}
	n, err := m.objects(ctx, crd, plan)
	if err != nil {
		return err
	}
	if plan.Store {
		before := crd.DeepCopy()
		crd.Status.StoredVersions = []string{plan.Version}
		if err := m.client.Status().Patch(ctx, crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("recording the stored version: %w", err)
		}
	}
	log.Info("migrated stored objects", "crd", name, "objects", n, "plan", plan.String())
	if len(m.skip) > 0 {
		return nil // a skipped phase is still outstanding
	}
	return m.observe(ctx, crd)
}

// observe records that this generation was migrated.
func (m *Migrator) observe(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	before := crd.DeepCopy()
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, clusterv1.CRDMigrationObservedGenerationAnnotation, strconv.FormatInt(crd.Generation, 10))
	if err := m.client.Patch(ctx, crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(owner)); err != nil {
		return fmt.Errorf("recording the migrated generation: %w", err)
	}
	return nil
}

// objects migrates every object of the CRD and returns their number.
func (m *Migrator) objects(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, plan plan) (int, error) {
	if !plan.Store && !plan.Clean {
		return 0, nil
	}
	kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: plan.Version, Kind: crd.Spec.Names.Kind}
	n, token := 0, ""
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := m.access[crd.Name].Reader.List(ctx, list, &client.ListOptions{Limit: page, Continue: token}); err != nil {
			return n, fmt.Errorf("listing: %w", err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			o.SetGroupVersionKind(kind)
			if err := m.object(ctx, o, crd, plan); err != nil {
				return n, err
			}
			n++
		}
		if token = list.Continue; token == "" {
			return n, nil
		}
	}
}

func (m *Migrator) object(ctx context.Context, o *metav1.PartialObjectMetadata, crd *apiextensionsv1.CustomResourceDefinition, plan plan) error {
	if plan.Clean { // first, because applying an object with stale entries fails
		if err := m.clean(ctx, o, crd, plan); err != nil {
			return fmt.Errorf("cleaning the managed fields of %s: %w", client.ObjectKeyFromObject(o), err)
		}
	}
	if plan.Store {
		if err := m.store(ctx, o, crd); err != nil {
			return fmt.Errorf("storing %s: %w", client.ObjectKeyFromObject(o), err)
		}
	}
	return nil
}

// store sends an empty apply, which makes the API server rewrite the object in the storage version. It
// applies the status subresource if there is one, because this bypasses webhooks that validate the spec. An
// object that was deleted or written in the meantime needs no migration.
func (m *Migrator) store(ctx context.Context, o *metav1.PartialObjectMetadata, crd *apiextensionsv1.CustomResourceDefinition) error {
	nothing := &unstructured.Unstructured{}
	nothing.SetGroupVersionKind(o.GroupVersionKind())
	nothing.SetNamespace(o.Namespace)
	nothing.SetName(o.Name)
	nothing.SetUID(o.UID)
	nothing.SetResourceVersion(o.ResourceVersion)
	body := client.ApplyConfigurationFromUnstructured(nothing)
	var err error
	if hasStatus(crd, o.GroupVersionKind().Version) {
		err = m.access[crd.Name].Client.Status().Apply(ctx, body, client.FieldOwner(owner))
	} else {
		err = m.access[crd.Name].Client.Apply(ctx, body, client.FieldOwner(owner))
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func hasStatus(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			return v.Subresources != nil && v.Subresources.Status != nil
		}
	}
	return false
}

// clean removes managed fields entries whose version is no longer served. If no entry remains, it adds an
// entry without fields, because the API server assigns all fields of an object without entries to the first
// manager that applies it.
func (m *Migrator) clean(ctx context.Context, o *metav1.PartialObjectMetadata, crd *apiextensionsv1.CustomResourceDefinition, plan plan) error {
	group := o.GroupVersionKind().Group
	kept := slices.DeleteFunc(slices.Clone(o.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		gv, err := schema.ParseGroupVersion(e.APIVersion)
		return err == nil && gv.Group == group && !slices.Contains(plan.Served, gv.Version)
	})
	if len(kept) == len(o.ManagedFields) {
		return nil
	}
	if len(kept) == 0 {
		now := metav1.NewTime(time.Now())
		kept = []metav1.ManagedFieldsEntry{{
			Manager: owner, Operation: metav1.ManagedFieldsOperationUpdate, Time: &now, FieldsType: "FieldsV1",
			APIVersion: o.GroupVersionKind().GroupVersion().String(), FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:name":{}}}`)},
		}}
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": kept},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": o.ResourceVersion},
	})
	if err != nil {
		return err
	}
	err = m.access[crd.Name].Client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(owner))
	return client.IgnoreNotFound(err)
}
