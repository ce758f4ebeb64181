package plans

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// Path is where plans are served: below it are group, kind, namespace and name of an object.
const Path = "/debug/plans/"

// Handler serves the plans of a store. Before it has an API that tells who may read, it refuses every request.
type Handler struct {
	Store *Store
	// API tells who asks, and what they may read.
	API kubernetes.Interface
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "Plans can only be read: use GET", http.StatusMethodNotAllowed)
		return
	}
	part := strings.Split(strings.TrimPrefix(r.URL.Path, Path), "/")
	if len(part) != 4 || part[0] == "" || part[1] == "" || part[2] == "" || part[3] == "" {
		http.Error(w, "Ask for "+Path+"<group>/<kind>/<namespace>/<name>", http.StatusNotFound)
		return
	}
	kind, key := schema.GroupKind{Group: part[0], Kind: part[1]}, client.ObjectKey{Namespace: part[2], Name: part[3]}
	if code, text := h.authorize(r, kind, key); code != http.StatusOK {
		http.Error(w, text, code)
		return
	}
	record, ok := h.Store.Get(kind, key)
	if !ok {
		http.Error(w, "This manager has not reconciled "+kind.Kind+" "+key.String()+" since it started, or it does not exist", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(record)
}

// authorize asks the API server who asks, and whether they may get the object.
func (h *Handler) authorize(r *http.Request, kind schema.GroupKind, key client.ObjectKey) (int, string) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || h.API == nil {
		return http.StatusUnauthorized, "Send a bearer token of the management cluster"
	}
	who, err := h.API.AuthenticationV1().TokenReviews().Create(r.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, "The API server did not say whose token this is; try again"
	case !who.Status.Authenticated:
		return http.StatusUnauthorized, "The API server does not know this token"
	}
	allowed, err := h.mayGet(r.Context(), who.Status.User, kind, key)
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, "The API server did not say whether you may get this object; try again"
	case !allowed:
		return http.StatusForbidden, who.Status.User.Username + " may not get " + kind.Kind + " " + key.String()
	}
	return http.StatusOK, ""
}

func (h *Handler) mayGet(ctx context.Context, user authenticationv1.UserInfo, kind schema.GroupKind, key client.ObjectKey) (bool, error) {
	resource, _, _ := strings.Cut(contract.CRDName(kind.Group, kind.Kind), ".")
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	review, err := h.API.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Group: kind.Group, Version: "*", Resource: resource, Namespace: key.Namespace, Name: key.Name,
			},
		},
	}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed && !review.Status.Denied, err
}
