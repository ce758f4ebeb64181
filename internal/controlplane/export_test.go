package controlplane

// Tests outside of the package use these private names.
const ManagerUser = managerUser
