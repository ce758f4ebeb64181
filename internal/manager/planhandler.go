package manager

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// plansPath is the URL prefix of plans at the diagnostics endpoint. It is followed by group, kind, namespace and name
// of an object.
const plansPath = "/debug/plans/"

// PlanHandler serves, for `slipway explain` and `slipway ui`, the plans of a store at GET
// /debug/plans/<group>/<kind>/<namespace>/<name>. It authenticates users by a verified client certificate or a
// TokenReview, and authorizes them with a SubjectAccessReview for getting the object. The response to an unauthorized
// user does not reveal whether the object exists. Without an API for authorization it rejects every request.
type PlanHandler struct {
	Store *PlanStore
	// API authenticates tokens and authorizes users. A verified client certificate identifies its user
	// without it.
	API kubernetes.Interface
}

// ServeHTTP implements http.Handler.
func (h *PlanHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "Plans can only be read: use GET", http.StatusMethodNotAllowed)
		return
	}
	kind, key, ok := objectOf(r.URL.Path)
	if !ok {
		http.Error(w, "Ask for "+plansPath+"<group>/<kind>/<namespace>/<name>, without namespace for a kind that has none", http.StatusNotFound)
		return
	}
	if code, text := h.authorize(r, kind, key); code != http.StatusOK {
		http.Error(w, text, code)
		return
	}
	last, ok := h.Store.Get(kind, key)
	if !ok {
		http.Error(w, "This manager has not reconciled "+kind.Kind+" "+key.String()+" since it started, or it does not exist", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(last)
}

// PlanPath returns the path of the plans of an object. The key of a cluster-scoped object has no namespace.
func PlanPath(kind schema.GroupKind, key client.ObjectKey) string {
	if key.Namespace == "" {
		return plansPath + kind.Group + "/" + kind.Kind + "/" + key.Name
	}
	return plansPath + kind.Group + "/" + kind.Kind + "/" + key.Namespace + "/" + key.Name
}

// objectOf parses a path that [PlanPath] returned.
func objectOf(path string) (kind schema.GroupKind, key client.ObjectKey, ok bool) {
	part := strings.Split(strings.TrimPrefix(path, plansPath), "/")
	if n := len(part); n < 3 || n > 4 || slices.Contains(part, "") {
		return kind, key, false
	}
	key.Name = part[len(part)-1]
	if len(part) == 4 {
		key.Namespace = part[2]
	}
	return schema.GroupKind{Group: part[0], Kind: part[1]}, key, true
}

// authorize authenticates the request and checks with the API server whether the user may get the object.
func (h *PlanHandler) authorize(r *http.Request, kind schema.GroupKind, key client.ObjectKey) (int, string) {
	if h.API == nil {
		return http.StatusUnauthorized, "The manager is starting; try again"
	}
	user, code, text := h.authenticate(r)
	if code != http.StatusOK {
		return code, text
	}
	allowed, err := h.mayGet(r.Context(), user, kind, key)
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, "The API server did not say whether you may get this object; try again"
	case !allowed:
		return http.StatusForbidden, user.Username + " may not get " + kind.Kind + " " + key.String()
	}
	return http.StatusOK, ""
}

// authenticate returns the user of the verified client certificate or of the bearer token.
func (h *PlanHandler) authenticate(r *http.Request) (user authenticationv1.UserInfo, code int, text string) {
	if hasCertificate(r) {
		return certificateUser(r)
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return user, http.StatusUnauthorized, "Send a bearer token of the management cluster, as \"kubectl create token\" makes one"
	}
	who, err := h.API.AuthenticationV1().TokenReviews().Create(r.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return user, http.StatusServiceUnavailable, "The API server did not say whose token this is; try again"
	case !who.Status.Authenticated:
		return user, http.StatusUnauthorized, "The API server does not know this token"
	}
	return who.Status.User, http.StatusOK, ""
}

func (h *PlanHandler) mayGet(ctx context.Context, user authenticationv1.UserInfo, kind schema.GroupKind, key client.ObjectKey) (bool, error) {
	resource, _, _ := strings.Cut(contract.CRDName(kind.Group, kind.Kind), ".")
	return isAllowed(ctx, h.API, user, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: "get", Group: kind.Group, Version: "*", Resource: resource, Namespace: key.Namespace, Name: key.Name,
	}})
}

// isAllowed checks an action of a user with a SubjectAccessReview. [certificateHandler] calls it, too (certificates.go).
func isAllowed(ctx context.Context, api kubernetes.Interface, user authenticationv1.UserInfo, action authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	action.User, action.UID, action.Groups, action.Extra = user.Username, user.UID, user.Groups, map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		action.Extra[k] = authorizationv1.ExtraValue(v)
	}
	review, err := api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: action}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed && !review.Status.Denied, err
}
