package topology

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/naming"
)

// attempts is the number of names to try before a user has to change the name template.
const attempts = 10

// Default name templates, as documented in the API of ClusterClass.
const (
	clusterNaming    = "{{ .cluster.name }}-{{ .random }}"
	deploymentNaming = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"
	poolNaming       = "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}"
)

// namer generates the names of objects of one Cluster, for [NewDraft] and [Draft.Rotate]. Names depend only on their
// input, so that an object which was created before a crash, but is not referenced yet, is found by its name. A change
// of the digest or its input would create such objects twice.
type namer struct {
	cluster string
	// seed is the namespace and name of the Cluster.
	seed string
}

// digest returns the random part of a name, which is the same for the same words.
func digest(words ...string) string {
	hash := sha256.New()
	for _, word := range words {
		hash.Write(binary.AppendUvarint(nil, uint64(len(word))))
		hash.Write([]byte(word))
	}
	sum, at := hash.Sum(nil), 0
	return naming.Random(func(n int) int {
		number := binary.BigEndian.Uint32(sum[at:])
		at += 4
		return int(number % uint32(n))
	})
}

// object returns the name of a new object, which the object retains afterwards. It replaces .random by a digest, and
// tries the next one if the name is taken. [NewDraft] calls it for each part that has no object yet.
func (n namer) object(key Key, text string, taken func(string) bool) (string, error) {
	values := naming.Values{"cluster": {"name": n.cluster}}
	switch key.Role {
	case Deployment:
		values["machineDeployment"] = map[string]string{"topologyName": key.Worker}
	case Pool:
		values["machinePool"] = map[string]string{"topologyName": key.Worker}
	}
	template, err := naming.ParseAny(text, values)
	if err != nil {
		return "", fault.New(fault.Invalid, "NameTemplateInvalid", "the name template of the %s in the ClusterClass %s", key, err)
	}
	for attempt := range attempts {
		name, err := template.Name(values, digest(n.seed, string(key.Role), key.Worker, strconv.Itoa(attempt)))
		if err != nil {
			return "", fault.New(fault.Invalid, "NameTemplateInvalid", "the name template of the %s in the ClusterClass %s", key, err)
		}
		if !taken(name) {
			return name, nil
		}
	}
	return "", fault.New(fault.Invalid, "NameTaken", "the name of the %s is used by an object that is being deleted or belongs to another part of the topology; "+
		"use {{ .random }} in its name template in the ClusterClass", key)
}

// revision returns the name of a template, or of an object created from one, derived from its spec. [NewDraft] and
// [Draft.Rotate] call it for templates, and the [builder] for the objects of MachinePools.
func (n namer) revision(key Key, spec any) (string, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return "", fault.New(fault.Bug, "InvalidSpec", "the spec of the %s cannot be encoded", key).From(err)
	}
	prefix := n.cluster
	if key.Worker != "" {
		prefix += "-" + key.Worker
	}
	suffix := "-" + digest(n.seed, string(key.Role), key.Worker, string(data))
	return prefix[:min(len(prefix), naming.MaxLength-len(suffix))] + suffix, nil
}
