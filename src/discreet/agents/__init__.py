"""Questions of agents: describe, preview, ask, each within what it may cost, over the Model Context Protocol."""
