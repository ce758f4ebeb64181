package simulated_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// TestOpenAPIDocument: kubectl validates a List with the OpenAPI v2 document, which it requests as protobuf. An encoder of
// protobuf refuses a document without a version.
func TestOpenAPIDocument(t *testing.T) {
	document, err := clientOf(t, newWorld(t, t.TempDir()).start(t, "one")).Discovery().OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	if document.GetInfo().GetVersion() == "" || len(document.GetPaths().GetPath()) == 0 {
		t.Errorf("the document has version %q and %d paths", document.GetInfo().GetVersion(), len(document.GetPaths().GetPath()))
	}
}

// TestClusterAutoscalerInformers: the cluster autoscaler 1.36 starts these informers and does nothing before all of them have
// synced. Dynamic resource allocation cannot be switched off in it.
func TestClusterAutoscalerInformers(t *testing.T) { // AS-01
	w := newWorld(t, t.TempDir())
	c, err := kubernetes.NewForConfig(w.start(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	create := metav1.CreateOptions{}
	if _, err := c.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}, create); err != nil {
		t.Fatal(err)
	}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "one-gpu"},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}
	if _, err := c.ResourceV1().ResourceClaims("default").Create(t.Context(), claim, create); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(c, 0)
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Nodes().Informer(), factory.Core().V1().Pods().Informer(), factory.Core().V1().Namespaces().Informer(),
		factory.Core().V1().Services().Informer(), factory.Core().V1().ReplicationControllers().Informer(),
		factory.Core().V1().PersistentVolumes().Informer(), factory.Core().V1().PersistentVolumeClaims().Informer(),
		factory.Core().V1().ConfigMaps().Informer(), factory.Apps().V1().DaemonSets().Informer(), factory.Apps().V1().ReplicaSets().Informer(),
		factory.Apps().V1().StatefulSets().Informer(), factory.Batch().V1().Jobs().Informer(), factory.Policy().V1().PodDisruptionBudgets().Informer(),
		factory.Storage().V1().StorageClasses().Informer(), factory.Storage().V1().CSINodes().Informer(), factory.Storage().V1().CSIDrivers().Informer(),
		factory.Storage().V1().CSIStorageCapacities().Informer(), factory.Storage().V1().VolumeAttachments().Informer(),
		factory.Resource().V1().DeviceClasses().Informer(), factory.Resource().V1().ResourceClaims().Informer(),
		factory.Resource().V1().ResourceClaimTemplates().Informer(), factory.Resource().V1().ResourceSlices().Informer(),
	} {
		synced = append(synced, informer.HasSynced)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
			if !ok {
				t.Errorf("the informer of %s did not sync", kind)
			}
		}
		t.FailNow()
	}
	claims, err := factory.Resource().V1().ResourceClaims().Lister().ResourceClaims(corev1.NamespaceDefault).Get("one-gpu")
	if err != nil || claims.Spec.Devices.Requests[0].Exactly.DeviceClassName != "gpu" {
		t.Errorf("ResourceClaim in the cache: %v, %v", claims, err)
	}
}
