package policy

import (
	"bytes"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// comments maps the path of each setting to its description, with the default, for --print-config. A test checks that
// each setting has an entry. The defaults repeat those of [Default].
func comments() map[string]string {
	return map[string]string{
		"apiVersion": "Limits for users who write objects, set by the operator. Every setting is optional. A change requires a restart.",
		"kind":       "",
		"providers":  "The built-in providers that run.",
		"providers.disabled": "Providers that do not run, out of bootstrap-kubeadm, cluster-api, control-plane-hosted, control-plane-kubeadm,\n" +
			"infrastructure-local, infrastructure-ssh and simulated. slipway up --without adds to this list. Default: none.",
		"management":                "The management cluster of slipway up.",
		"management.encryptSecrets": "Encrypt Secrets in etcd, with a key in the data directory. Default: true.",
		"management.authentication": "{jwt: […]} trusts the tokens of issuers such as OpenID Connect providers, as in a HostedControlPlane.\n" +
			"Default: null, only client certificates and ServiceAccount tokens.",
		"management.audit": "{} records in log/audit.log of the data directory who did what and when, without contents; {policy: …} sets\n" +
			"the audit policy, as in a HostedControlPlane. Default: null, no audit log.",
		"management.addresses": "Further addresses of this host at which the API server listens, on the port of slipway up --listen.\n" +
			"Clients at these addresses need credentials. Default: none.",
		"management.names": "Further host names and IP addresses for the certificate of the API server. It always contains the addresses\n" +
			"above. Default: none.",
		"management.nodeInternet": "Network access beyond this host for the node of slipway up --node. A change recreates the node. Default: false.",
		"management.memoryMiB": "Memory above which the process collects garbage regardless of the processor time. The process may exceed it.\n" +
			"Default: 0, two fifths of the memory of this host.",
		"management.editSecrets": "The roles edit and admin read and write Secrets, including administrator kubeconfigs of clusters. If false,\n" +
			"users get their own credentials with slipway get kubeconfig --user, and a KubeadmConfig cannot copy such Secrets into\n" +
			"a node. Default: true.",
		"manager":           "The process that runs the controllers of slipway up.",
		"manager.memoryMiB": "Memory limit. The process is killed and restarted if it exceeds it. Default: 0, half of the memory of this host.",
		"nodes":             "Limits for the containers of the Local provider.",
		"nodes.mounts": "Folders of this host, with their content, that spec.backend.container.extraMounts may refer to:\n" +
			"{path: /srv/shared, writable: true, namespaces: [team-a]}. Default: none; read-only; all namespaces.",
		"nodes.images": "Images that nodes may run: a name with a tag or digest, a repository for all of its tags, or a prefix that\n" +
			"ends with /*. Default: the images of slipway image build.",
		"nodes.cpus":      "Processors: the limit for one node, and the value for nodes without a request. Default: 0, no limit.",
		"nodes.memoryMiB": "Memory: the limit for one node, and the value for nodes without a request. Default: 0, no limit.",
		"nodes.processes": "Processes: the limit for one node, and the value for nodes without a request. Default: 32768.",
		"networks":        "Limits for the networks of clusters of the Local provider.",
		"networks.ranges": "Ranges that must contain the network of a cluster. Hosts in these ranges that are reached by the default route,\n" +
			"such as a company network, can become unreachable. Default: 172.16.0.0/12.",
		"networks.widestPrefix":        "The smallest prefix length of a network. Default: 15.",
		"networks.internet":            "Networks with access beyond this host, to everything that the host reaches.",
		"networks.internet.allowed":    "Clusters may request access in spec.backend.container.network.internet. Default: false.",
		"networks.internet.namespaces": "Namespaces whose clusters may request access. Default: all.",
		"networks.internet.nameServers": "IPv4 addresses of the name servers that resolve external names for Pods of such clusters. Default: the name\n" +
			"servers of this host, without loopback addresses.",
		"controlPlanes": "Limits for the addresses of hosted control planes, in addition to the gateway of the network of their cluster,\n" +
			"and for the token issuers that they trust.",
		"controlPlanes.addresses":     "Ranges of addresses of this host. Default: none.",
		"controlPlanes.reservedPorts": "Ports of these addresses that hosted control planes may not use. Default: none.",
		"controlPlanes.issuers": "URLs of the token issuers that API servers may trust. API servers are processes of this host and connect to the\n" +
			"issuers and to their redirects. Default: none.",
		"hosts":            "Limits for the hosts of the SSH provider, which connects only to hosts for which there is an SSHHost.",
		"hosts.ranges":     "Ranges that must contain the addresses of SSHHosts and their jump hosts. DNS names are denied then. Default: any.",
		"hosts.namespaces": "Namespaces whose SSHHosts are used. Default: all.",
		"hosts.endpoints":  "Ranges that must contain the control plane endpoint of an SSHCluster. DNS names are denied then. Default: any.",
		"hosts.virtualIPs": "Ranges that must contain the virtual IP addresses of SSHClusters, which control plane hosts add to their network\n" +
			"interfaces: 192.0.2.0/28, or {range: 192.0.2.0/28, namespaces: [team-a]}. Default: none; all namespaces.",
		"hosts.atOnce": "Maximum number of hosts that are worked on at the same time, at most half of them to prepare or clean them.\n" +
			"Default: 40.",
		"workloads":         "Limits for connections of the manager to workload clusters, whose kubeconfigs are Secrets of the namespaces.",
		"workloads.ranges":  "Ranges that must contain the address of a workload cluster. Default: any.",
		"workloads.proxies": "Permitted values of proxy-url in a kubeconfig. Default: none.",
		"snapshots":         "Destinations of etcd snapshots, in addition to the folder snapshots of the data directory.",
		"snapshots.folders": "Folders of this host that spec.destination.folder.path of EtcdSnapshotPolicies may refer to:\n" +
			"{path: /srv/snapshots, namespaces: [team-a]}. Default: none; all namespaces.",
		"snapshots.endpoints": "Endpoints of S3-compatible stores, written as in spec.destination.s3.endpoint. The manager connects to them from\n" +
			"this host. Default: none.",
		"snapshots.namespaceMiB":        "Limit for the snapshots of one namespace in one folder. 0: no limit. Default: 10240.",
		"maxima":                        "Limits for one object, for one namespace and in total. 0: no limit.",
		"maxima.replicas":               "Replicas of one MachineDeployment, MachineSet or MachinePool. Default: 1000.",
		"maxima.nodes":                  "Containers. Default: 100 in a namespace, 250 in total.",
		"maxima.networks":               "Docker networks of clusters. Default: 30 in a namespace, 100 in total.",
		"maxima.networkAddresses":       "Sum of the addresses of these networks. Default: 524288 in a namespace, half of 172.16.0.0/12.",
		"maxima.controlPlanes":          "Processes of hosted control planes. Default: 30 in a namespace, 100 in total.",
		"maxima.simulatedNodes":         "Nodes of the simulated backend, which are in the memory of the manager. Default: 5000 in total.",
		"maxima.simulatedControlPlanes": "Control planes of the simulated backend. Default: 2000 in total.",
		"maxima.simulatedObjects":       "Objects in one simulated workload API. Default: 50000.",
	}
}

// Print encodes the configuration as a file that [Parse] accepts, with a comment on each setting. The flag
// --print-config of `slipway up` and `slipway manager` shows it.
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
