// Package main is a provider of other people in small: it is run as a Deployment, needs the API server to become ready, and
// defaults and validates objects by webhooks. It uses nothing of Slipway.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

// review is what is used of an AdmissionReview.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID    string `json:"uid"`
	Object struct {
		Data map[string]string `json:"data"`
	} `json:"object"`
}

type response struct {
	UID       string            `json:"uid"`
	Allowed   bool              `json:"allowed"`
	Status    map[string]string `json:"status,omitempty"`
	Patch     []byte            `json:"patch,omitempty"`
	PatchType string            `json:"patchType,omitempty"`
}

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/default", answer(func(r *request) response {
		if r.Object.Data["region"] != "" {
			return response{Allowed: true}
		}
		return response{Allowed: true, PatchType: "JSONPatch", Patch: []byte(`[{"op":"add","path":"/data/region","value":"moon"}]`)}
	}))
	mux.HandleFunc("/validate", answer(func(r *request) response {
		if r.Object.Data["size"] == "impossible" {
			return response{Status: map[string]string{"message": "size: nothing is that large"}}
		}
		return response{Allowed: true}
	}))
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := reachAPI(); err != nil {
			log.Print(err)
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: ":9443", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServeTLS("/certs/tls.crt", "/certs/tls.key"))
}

func answer(judge func(*request) response) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in review
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in); err != nil || in.Request == nil {
			http.Error(w, fmt.Sprint("no review: ", err), http.StatusBadRequest)
			return
		}
		out := judge(in.Request)
		out.UID = in.Request.UID
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review{APIVersion: in.APIVersion, Kind: in.Kind, Response: &out})
	}
}

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

// reachAPI reads ConfigMaps of the Pod's namespace with its ServiceAccount: through the name of the Service, as programs do.
func reachAPI() error {
	token, err1 := os.ReadFile(account + "token")
	ca, err2 := os.ReadFile(account + "ca.crt")
	namespace, err3 := os.ReadFile(account + "namespace")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	r, err := http.NewRequest(http.MethodGet, "https://kubernetes.default.svc/api/v1/namespaces/"+string(namespace)+"/configmaps", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server says %s", answer.Status)
	}
	return nil
}
