// Points providers of pi to the gateway for this run. `pagein run pi` sets the variable.
export default function (pi) {
  const told = JSON.parse(process.env.PAGEIN_PI_BASE_URLS || "{}");
  for (const [name, baseUrl] of Object.entries(told)) pi.registerProvider(name, { baseUrl });
}
