// Package substitution replaces the variables of templates by their values. It supports the envsubst syntax used in
// Cluster API provider templates: ${VAR}, also with spaces in the braces; defaults ${VAR:-x}, ${VAR:=x}, ${VAR=x};
// transformations (${VAR^^}, ${VAR:0:3}, ${VAR/a/b}, ${VAR%x} and so on); $${VAR} for the literal ${VAR}.
//
//	the variable has a value            the value, even if it is empty and there is no default
//	the value is empty, with a default  the default
//	no value, with a default            the default
//	no value, no default                an Invalid fault that lists all such variables
//
// The first reference to a variable in the template determines its default, as in clusterctl. Errors never contain the
// value of a variable.
package repository
