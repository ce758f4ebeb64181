package manager

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipwayhq/slipway/internal/manager"
)

// ConfigMap, and its key, in which a Kubernetes API server publishes the certificate authority of client certificates.
const (
	authenticationMap = "extension-apiserver-authentication"
	clientAuthorities = "client-ca-file"
)

// clientAuthority returns the certificate authority, in PEM, of client certificates of the management cluster's users.
// The manager command reads it at the start for the diagnostics server: a user with such a certificate may read the
// plans of objects that the user may get, as with a token. A manager without permission to read the ConfigMap, such as
// one with only the rights of its providers, does not try, and accepts only tokens.
func clientAuthority(ctx context.Context, cfg manager.Config) []byte {
	if cfg.Endpoints.Insecure || cfg.Endpoints.Diagnostics == "0" {
		return nil
	}
	api, err := kubernetes.NewForConfig(cfg.REST)
	if err != nil {
		return nil
	}
	may, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Version: "v1", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: authenticationMap,
		}},
	}, metav1.CreateOptions{})
	if err != nil || !may.Status.Allowed {
		return nil
	}
	found, err := api.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationMap, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return []byte(found.Data[clientAuthorities])
}
