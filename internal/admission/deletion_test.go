package admission_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/admission"
)

// MV-09: a class that is in use may not be deleted, but when it has been moved with those that use it.
func TestRefuseDeletion(t *testing.T) {
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "class"}}
	facts := admission.RelatedObjects{Users: []clusterv1.Cluster{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}}}
	if admission.RefuseDeletion(class, facts) == "" {
		t.Error("a class in use may be deleted")
	}
	class.Annotations = map[string]string{"clusterctl.cluster.x-k8s.io/delete-for-move": ""}
	if why := admission.RefuseDeletion(class, facts); why != "" {
		t.Error(why)
	}
}
