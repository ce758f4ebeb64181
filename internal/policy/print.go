package policy

import (
	"bytes"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// comments maps the path of each setting to its description, with the default.
func comments() map[string]string {
	return map[string]string{
		"apiVersion": "What an operator allows those who write objects. Every setting is optional. A change needs a restart.",
		"kind":       "",
		"providers":  "Which of the built-in providers run.",
		"providers.disabled": "Of bootstrap-kubeadm, cluster-api, control-plane-hosted, control-plane-kubeadm, infrastructure-local and\n" +
			"simulated, those that do not run: slipway up --without adds to them. Default: none.",
		"management":                "How the management cluster of slipway up is kept.",
		"management.encryptSecrets": "Whether Secrets are encrypted in its etcd data, with a key in the data directory. Default: true.",
		"management.authentication": "{jwt: […]} trusts the tokens of issuers, such as OpenID Connect providers, as in a HostedControlPlane.\n" +
			"Default: null, client certificates and ServiceAccounts alone.",
		"management.audit": "{} records who did what and when in log/audit.log of the data directory, without contents; {policy: …} says\n" +
			"what, as in a HostedControlPlane. Default: null, nothing is recorded.",
		"management.addresses": "Addresses of this host, besides that of slipway up --listen, at which its API server answers, at the same\n" +
			"port: a client that reaches them is asked for credentials. Default: none.",
		"management.names": "Further host names and IP addresses by which clients reach it, for its certificate; those of addresses are\n" +
			"in it. Default: none.",
		"management.nodeInternet": "Whether the node of slipway up --node has a way out of this host. A change creates it again. Default: false.",
		"management.memoryMiB": "The memory near which its process collects garbage without regard to the processor time that this takes; it\n" +
			"may use more. Default: 0, two fifths of the memory of this host.",
		"management.editSecrets": "Whether the roles edit and admin read and write Secrets, the administrators' kubeconfigs of clusters among\n" +
			"them. Without it slipway get kubeconfig --user gives users credentials of their own, and a KubeadmConfig copies no\n" +
			"such Secret into a node. Default: true.",
		"manager": "The process that runs the controllers of slipway up.",
		"manager.memoryMiB": "The most memory it may use: with more, it is killed and started again. Default: 0, half of the memory of\n" +
			"this host.",
		"nodes": "What the containers of the Local provider may be and reach.",
		"nodes.mounts": "Folders of this host that spec.backend.container.extraMounts may name, with all that is in them:\n" +
			"{path: /srv/shared, writable: true, namespaces: [team-a]}. Default: none; read-only; all namespaces.",
		"nodes.images": "Images that nodes may run: a name with a tag or digest, a repository for all of its tags, or a prefix that\n" +
			"ends with /*. Default: what slipway image build makes.",
		"nodes.cpus":      "The most that one node may use, and what a node gets that asks for nothing. Default: 0, no limit.",
		"nodes.memoryMiB": "As above. Default: 0, no limit.",
		"nodes.processes": "As above. Default: 32768.",
		"networks":        "Where clusters of the Local provider may take their addresses.",
		"networks.ranges": "Ranges that a network has to lie in. What this host reaches by its default route in them, as the network of a\n" +
			"company, can be cut off by a cluster. Default: 172.16.0.0/12.",
		"networks.widestPrefix":        "The length of the widest prefix that one network may have. Default: 15.",
		"networks.internet":            "Which of them may have a way out of this host, to everything that it reaches.",
		"networks.internet.allowed":    "Whether clusters may ask for it in spec.backend.container.network.internet. Default: false.",
		"networks.internet.namespaces": "Namespaces whose clusters may. Default: all.",
		"networks.internet.nameServers": "IPv4 addresses that Pods of such clusters ask for names outside of them. Default: those that this host asks,\n" +
			"without its loopback addresses.",
		"controlPlanes": "Where hosted control planes may listen, besides the gateway of the network of their cluster, and whom they\n" +
			"may trust.",
		"controlPlanes.addresses":     "Ranges of addresses of this host. Default: none.",
		"controlPlanes.reservedPorts": "Ports of these addresses where none may listen. Default: none.",
		"controlPlanes.issuers": "URLs of the issuers whose tokens API servers may accept. They are processes of this host and connect to\n" +
			"these, and to where these send them. Default: none.",
		"workloads":         "How the manager connects to workload clusters, whose kubeconfigs are Secrets of the namespaces.",
		"workloads.ranges":  "Ranges that the address of a workload cluster has to lie in. Default: any.",
		"workloads.proxies": "The values of proxy-url that a kubeconfig may have. Default: none.",
		"snapshots":         "Where snapshots of etcd may be stored, besides the folder snapshots of the data directory.",
		"snapshots.folders": "Folders of this host that spec.destination.folder.path of EtcdSnapshotPolicies may name:\n" +
			"{path: /srv/snapshots, namespaces: [team-a]}. Default: none; all namespaces.",
		"snapshots.endpoints": "Endpoints of S3-compatible stores, as spec.destination.s3.endpoint has them. The manager connects to them\n" +
			"from this host. Default: none.",
		"snapshots.namespaceMiB":        "The most that the snapshots of one namespace may have in one folder. 0: no limit. Default: 10240.",
		"maxima":                        "What one object, one namespace and all of them can cost. 0: no limit.",
		"maxima.replicas":               "Replicas of one MachineDeployment, MachineSet or MachinePool. Default: 1000.",
		"maxima.nodes":                  "Containers. Default: 100 in a namespace, 250 in total.",
		"maxima.networks":               "Docker networks of clusters. Default: 30 in a namespace, 100 in total.",
		"maxima.networkAddresses":       "Addresses of these networks together. Default: 524288 in a namespace, half of 172.16.0.0/12.",
		"maxima.controlPlanes":          "Processes of hosted control planes. Default: 30 in a namespace, 100 in total.",
		"maxima.simulatedNodes":         "Nodes of the simulated backend, which live in the memory of the manager. Default: 5000 in total.",
		"maxima.simulatedControlPlanes": "Control planes of the simulated backend. Default: 2000 in total.",
		"maxima.simulatedObjects":       "Objects in one simulated workload API. Default: 50000.",
	}
}

// Print encodes the configuration as a file that [Parse] accepts, with a comment on each setting.
func (c Configuration) Print() ([]byte, error) {
	plain, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("print the configuration: %w", err)
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(plain, &document); err != nil {
		return nil, fmt.Errorf("print the configuration: %w", err)
	}
	explain(document.Content[0], "", comments())
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, fmt.Errorf("print the configuration: %w", err)
	}
	return out.Bytes(), encoder.Close()
}

// explain adds the comments to the keys of a mapping and of nested mappings.
func explain(mapping *yamlv3.Node, prefix string, comments map[string]string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		key.HeadComment = comments[prefix+key.Value]
		if value.Kind == yamlv3.MappingNode {
			explain(value, prefix+key.Value+".", comments)
		}
	}
}
