package simulated

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/core"
)

// namespaceAdmission rejects objects in a namespace that does not exist or is being deleted, like the admission plugin
// NamespaceLifecycle of Kubernetes. The api calls it for every create; it is the only admission of simulated clusters.
type namespaceAdmission struct{ namespaces rest.Storage }

func (namespaceAdmission) Handles(operation admission.Operation) bool {
	return operation == admission.Create
}

func (i namespaceAdmission) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	name := a.GetNamespace()
	if name == "" || a.GetKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() {
		return nil
	}
	o, err := i.namespaces.(rest.Getter).Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	if namespace, ok := o.(*core.Namespace); !ok || namespace.DeletionTimestamp.IsZero() {
		return nil
	}
	err = admission.NewForbidden(a, fmt.Errorf("namespace %s is being deleted", name))
	if status, ok := err.(*apierrors.StatusError); ok {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Message: "namespace " + name + " is being deleted", Field: "metadata.namespace",
		})
	}
	return err
}
