package manager

import (
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/client-go/kubernetes"
)

// certificateHandler serves requests with a verified client certificate if a SubjectAccessReview allows its user the
// path, and passes other requests on to a handler that accepts tokens alone. The administrator of `slipway up` has a
// certificate and no token. [authorized] wraps metrics, profiles and the log level in it.
type certificateHandler struct {
	API kubernetes.Interface
	// Protected serves a request that is authorized, and ByToken authenticates and authorizes requests itself.
	Protected, ByToken http.Handler
}

// ServeHTTP implements http.Handler.
func (h *certificateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !hasCertificate(r) {
		h.ByToken.ServeHTTP(w, r)
		return
	}
	user, code, text := certificateUser(r)
	if code != http.StatusOK {
		http.Error(w, text, code)
		return
	}
	allowed, err := isAllowed(r.Context(), h.API, user, authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
	})
	switch {
	case err != nil:
		http.Error(w, "The API server returned an error for the check of your permissions; try again", http.StatusServiceUnavailable)
	case !allowed:
		http.Error(w, user.Username+" may not "+strings.ToLower(r.Method)+" "+r.URL.Path, http.StatusForbidden)
	default:
		h.Protected.ServeHTTP(w, r)
	}
}

// hasCertificate reports whether the client has a certificate of the management cluster. The TLS server has verified it.
func hasCertificate(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }

// certificateUser returns the user that the client certificate names. [PlanHandler] calls it, too.
func certificateUser(r *http.Request) (user authenticationv1.UserInfo, code int, text string) {
	who, ok, err := x509.CommonNameUserConversion.User(r.TLS.VerifiedChains[0])
	if err != nil || !ok {
		return user, http.StatusUnauthorized, "The client certificate names no user"
	}
	user = authenticationv1.UserInfo{Username: who.User.GetName(), UID: who.User.GetUID(), Groups: who.User.GetGroups(), Extra: map[string]authenticationv1.ExtraValue{}}
	for k, v := range who.User.GetExtra() {
		user.Extra[k] = v
	}
	user.Groups = append(user.Groups, "system:authenticated") // added by the API server, too
	return user, http.StatusOK, ""
}
