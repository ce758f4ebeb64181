// Package mirrortest serves the part of the Kubernetes API that a mirror reads: discovery, get, list and watch of objects in
// memory. Tests change the objects with Put and Delete.
package mirrortest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// resource is a served resource.
type resource struct {
	group, version, name, kind string
	clusterScoped              bool
}

func resources() []resource {
	const core, infra = "cluster.x-k8s.io", "infrastructure.slipway.dev"
	return []resource{
		{core, "v1beta2", "clusters", "Cluster", false},
		{core, "v1beta2", "clusterclasses", "ClusterClass", false},
		{core, "v1beta2", "machinedeployments", "MachineDeployment", false},
		{core, "v1beta2", "machinesets", "MachineSet", false},
		{core, "v1beta2", "machinepools", "MachinePool", false},
		{core, "v1beta2", "machines", "Machine", false},
		{core, "v1beta2", "machinehealthchecks", "MachineHealthCheck", false},
		{"controlplane.cluster.x-k8s.io", "v1beta2", "kubeadmcontrolplanes", "KubeadmControlPlane", false},
		{"bootstrap.cluster.x-k8s.io", "v1beta2", "kubeadmconfigs", "KubeadmConfig", false},
		{"runtime.cluster.x-k8s.io", "v1beta2", "extensionconfigs", "ExtensionConfig", true},
		{infra, "v1alpha1", "localclusters", "LocalCluster", false},
		{infra, "v1alpha1", "localmachines", "LocalMachine", false},
		{"infra.example.com", "v1", "foomachines", "FooMachine", false},
		{"infra.example.com", "v1", "others", "Other", false},
		{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", true},
		{"events.k8s.io", "v1", "events", "Event", false},
		{"", "v1", "secrets", "Secret", false},
		{"", "v1", "configmaps", "ConfigMap", false},
	}
}

// API is a running server.
type API struct {
	URL string

	mu        sync.Mutex
	changed   *sync.Cond
	version   int
	log       []change
	objects   map[string]*unstructured.Unstructured
	forbidden map[string]bool
	requests  []string
	streams   bool
	closed    bool
}

type change struct {
	version  int
	resource string
	event    string
	object   *unstructured.Unstructured
}

// Start serves the objects of a YAML document with the separator "---" until the test ends. CRDs of infra.example.com have
// the label of a provider, except Other.
func Start(t testing.TB, objects string) *API {
	t.Helper()
	a := &API{objects: map[string]*unstructured.Unstructured{}, forbidden: map[string]bool{}, version: 1}
	a.changed = sync.NewCond(&a.mu)
	server := httptest.NewServer(a)
	a.URL = server.URL
	t.Cleanup(func() {
		a.mu.Lock()
		a.closed = true
		a.changed.Broadcast()
		a.mu.Unlock()
		server.CloseClientConnections()
		server.Close()
	})
	a.Put(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foomachines.infra.example.com, labels: {cluster.x-k8s.io/provider: infrastructure-foo}}}`)
	a.Put(t, objects)
	return a
}

// Config returns the configuration of a client.
func (a *API) Config() *rest.Config { return &rest.Config{Host: a.URL} }

// Forbid rejects all requests for a resource.
func (a *API) Forbid(resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forbidden[resource] = true
}

// Stream lets clients read the objects of a list as events, as current API servers do. Otherwise such requests are rejected, as
// by older ones.
func (a *API) Stream() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams = true
}

// Requests returns the paths of all requests so far.
func (a *API) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Put creates or replaces the objects of a YAML document.
func (a *API) Put(t testing.TB, objects string) {
	t.Helper()
	for doc := range strings.SplitSeq(objects, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		a.PutObject(u)
	}
}

// PutObject creates or replaces an object.
func (a *API) PutObject(u *unstructured.Unstructured) {
	r := a.resourceOf(u)
	key := r + "/" + u.GetNamespace() + "/" + u.GetName()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	u.SetResourceVersion(strconv.Itoa(a.version))
	if u.GetUID() == "" {
		u.SetUID(types.UID(fmt.Sprintf("uid-%d", a.version)))
	}
	event := "ADDED"
	if a.objects[key] != nil {
		event = "MODIFIED"
	}
	a.objects[key] = u
	a.log = append(a.log, change{a.version, r, event, u})
	a.changed.Broadcast()
}

// Delete removes an object.
func (a *API) Delete(resource, namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := resource + "/" + namespace + "/" + name
	u := a.objects[key]
	if u == nil {
		return
	}
	delete(a.objects, key)
	a.version++
	u = u.DeepCopy()
	u.SetResourceVersion(strconv.Itoa(a.version))
	a.log = append(a.log, change{a.version, resource, "DELETED", u})
	a.changed.Broadcast()
}

func (a *API) resourceOf(u *unstructured.Unstructured) string {
	gvk := u.GroupVersionKind()
	for _, r := range resources() {
		if r.group == gvk.Group && r.kind == gvk.Kind {
			return r.name
		}
	}
	panic("unknown kind " + gvk.String())
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.Path)
	a.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	if parts[0] == "apis" && len(parts) > 1 {
		group, parts = parts[1], parts[1:]
	}
	switch {
	case len(parts) == 1 && parts[0] == "api":
		respond(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case len(parts) == 1:
		respond(w, groupList())
	case len(parts) == 2:
		respond(w, resourceList(group, parts[1]))
	default:
		a.serveObjects(w, r, parts[2:])
	}
}

func (a *API) serveObjects(w http.ResponseWriter, r *http.Request, parts []string) {
	namespace, name := "", ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	a.mu.Lock()
	forbidden, streams := a.forbidden[parts[0]], a.streams
	a.mu.Unlock()
	query := r.URL.Query()
	switch {
	case forbidden:
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, parts[0]+" is forbidden")
	case query.Get("sendInitialEvents") != "" && !streams:
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is not supported")
	case name != "":
		a.get(w, parts[0]+"/"+namespace+"/"+name)
	case query.Get("watch") != "":
		a.watch(w, r, parts[0], namespace)
	default:
		a.list(w, r, parts[0], namespace)
	}
}

func (a *API) get(w http.ResponseWriter, key string) {
	a.mu.Lock()
	u := a.objects[key]
	a.mu.Unlock()
	if u == nil {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, key+" not found")
		return
	}
	respond(w, u.Object)
}

func (a *API) list(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	a.mu.Lock()
	items := []any{}
	for key, u := range a.objects {
		if strings.HasPrefix(key, resource+"/") && (namespace == "" || u.GetNamespace() == namespace) && selector.Matches(labels.Set(u.GetLabels())) {
			items = append(items, u.Object)
		}
	}
	version := strconv.Itoa(a.version)
	a.mu.Unlock()
	list := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": version}, "items": items}
	known := resourceNamed(resource)
	list["apiVersion"], list["kind"] = strings.TrimPrefix(known.group+"/"+known.version, "/"), known.kind+"List"
	if resource == "customresourcedefinitions" {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	respond(w, list)
}

// watch sends the changes after the version of the request until the request or the test ends.
func (a *API) watch(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	seen, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		seen = a.sendInitialEvents(w, resource, namespace)
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
			a.mu.Lock()
			a.changed.Broadcast()
			a.mu.Unlock()
		case <-stop:
		}
	}()
	for {
		pending, ok := a.next(r, seen)
		if !ok {
			return
		}
		for _, c := range pending {
			seen = c.version
			if c.resource != resource || namespace != "" && c.object.GetNamespace() != namespace {
				continue
			}
			data, _ := json.Marshal(map[string]any{"type": c.event, "object": c.object.Object})
			if _, err := w.Write(append(data, '\n')); err != nil {
				return
			}
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// sendInitialEvents sends the current objects and the event that ends them, and returns their version.
func (a *API) sendInitialEvents(w http.ResponseWriter, resource, namespace string) int {
	out := json.NewEncoder(w)
	kind := resourceNamed(resource)
	a.mu.Lock()
	version := a.version
	var all []*unstructured.Unstructured
	for key, u := range a.objects {
		if strings.HasPrefix(key, resource+"/") && (namespace == "" || u.GetNamespace() == namespace) {
			all = append(all, u)
		}
	}
	a.mu.Unlock()
	for _, u := range all {
		_ = out.Encode(map[string]any{"type": "ADDED", "object": u.Object}) // the connection may end, which the caller notices
	}
	_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
		"apiVersion": strings.TrimPrefix(kind.group+"/"+kind.version, "/"), "kind": kind.kind,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"}},
	}})
	_ = http.NewResponseController(w).Flush()
	return version
}

func resourceNamed(name string) resource {
	all := resources()
	return all[slices.IndexFunc(all, func(r resource) bool { return r.name == name })]
}

// next waits for changes after a version.
func (a *API) next(r *http.Request, seen int) ([]change, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		if a.closed || r.Context().Err() != nil {
			return nil, false
		}
		i := slices.IndexFunc(a.log, func(c change) bool { return c.version > seen })
		if i >= 0 {
			return slices.Clone(a.log[i:]), true
		}
		a.changed.Wait()
	}
}

func groupList() metav1.APIGroupList {
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	seen := map[string]bool{"": true}
	for _, r := range resources() {
		if !seen[r.group] {
			seen[r.group] = true
			v := metav1.GroupVersionForDiscovery{GroupVersion: r.group + "/" + r.version, Version: r.version}
			out.Groups = append(out.Groups, metav1.APIGroup{Name: r.group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
	}
	return out
}

func resourceList(group, version string) metav1.APIResourceList {
	out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.TrimPrefix(group+"/"+version, "/")}
	for _, r := range resources() {
		if r.group == group && r.version == version {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: r.name, Kind: r.kind, Namespaced: !r.clusterScoped, Verbs: metav1.Verbs{"get", "list", "watch"}})
		}
	}
	return out
}

func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code),
	})
}
