
// Refuses the built-in shell; the error is what the model reads.
export const OutlastRedirect = async ({ client }) => ({
  "tool.execute.before": async (input, output) => {
    const call = {
      hook_event_name: "tool.execute.before",
      session_id: input.sessionID,
      agent_id: await subAgent(client, input.sessionID),
      tool_name: input.tool,
      tool_input: output.args,
    }
    const { deny } = input.tool === "bash" ? await ask(client, call, ["--redirect"]) : {}
    if (deny) throw new Error(deny)
  },
})
