// Package uidisolation runs each hosted control plane under a separate Unix user when Slipway runs as root,
// and reads files of these processes without trusting them. It allocates an ID that is user and group of one
// control plane ([Assign]), changes the owner of its files ([ChownFolder]), permanently changes the user of its
// process ([SwitchUser]), and kills all processes of the user ([Kill]). Because the process of a control plane
// may be compromised, files in its directory are opened safely: symbolic links, pipes and files of other
// users are rejected ([Read], [ReadTrusted], [Open], [Append]). If Slipway does not run as root, nothing
// changes ([Unavailable]).
//
// The directory of such a control plane, and the subdirectories pki and log, are owned by root and by the
// group of the user, writable for both, and sticky. Therefore the process can create and replace its own
// files, but not files that the manager wrote. The group of the directory stores the allocated ID: it is set
// before the first process of the user starts, moves with the directory, and is deleted with it. The data
// directory around it remains inaccessible: the process is started in its directory and opens no absolute
// paths below the data directory. Package supervisor assigns the users and kills their
// processes; the process `slipway control-plane run` changes its user.
package uidisolation
